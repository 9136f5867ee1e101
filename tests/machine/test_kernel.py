"""Compiled code is called from Python by its entries alone: a kernel without a wrapper would end the process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from numba import njit

from bhemu.machine.compiler import JIT
from bhemu.machine.kernel import kernel

PACKAGE = Path(__file__).resolve().parents[2] / "bhemu"
COMPILED = {"njit", "instruction", "register_jitable", "overload", "overload_method", "overload_attribute"}
"""Decorators of functions that are compiled, or whose body is a text for the compiler."""
COMPILERS = {"compile_entry", "entry_of", "provide", "execute_loop"}
"""Functions that take a function to be compiled as an entry."""


@kernel
def inner(x):  # type: ignore[no-untyped-def]
    return x + 1


@kernel(forceinline=True)
def outer(x):  # type: ignore[no-untyped-def]
    return inner(x)


@njit
def call_outer(x):  # type: ignore[no-untyped-def]
    return outer(x)


def test_compiled_code_calls_a_kernel() -> None:
    assert call_outer(1) == 2


@pytest.mark.skipif(not JIT, reason="with Numba disabled a kernel is the Python function")
def test_a_call_of_a_kernel_from_python_is_refused() -> None:
    with pytest.raises(TypeError, match="outer can only be called from compiled code"):
        outer(1)


@pytest.mark.skipif(not JIT, reason="with Numba disabled a kernel is the Python function")
def test_the_python_text_of_a_kernel_cannot_call_another_kernel() -> None:
    with pytest.raises(TypeError, match="inner can only be called from compiled code"):
        outer.py_func(1)


# --- the whole package ---------------------------------------------------------------------------


def name_of(node: ast.expr) -> str:
    """The last part of a name: `kernel` for `@kernel`, `@kernel(...)` and `@module.kernel`."""
    if isinstance(node, ast.Call):
        return name_of(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """The outermost functions of a module, and the methods of its classes."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        else:
            yield from functions(node)


def decorators(function: ast.FunctionDef) -> set[str]:
    return {name_of(decorator) for decorator in function.decorator_list}


MODULES = {path.relative_to(PACKAGE): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def test_no_module_asks_for_the_python_text_of_compiled_code() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr == "py_func")
        or (isinstance(node, ast.Constant) and node.value == "py_func")
    ]
    assert [place for place in found if not place.startswith("machine/kernel.py")] == []


def kernels_in_scope(path: Path, known: dict[str, set[str]]) -> set[str]:
    """Names by which a module reaches kernels: its own, those that it imports, `module.name` of modules it imports."""
    module = ".".join(("bhemu", *path.with_suffix("").parts))
    found = set(known.get(module, ()))
    for node in ast.walk(MODULES[path]):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if alias.name in known.get(node.module, ()):
                    found.add(alias.asname or alias.name)
                inside = known.get(f"{node.module}.{alias.name}", ())
                found |= {f"{alias.asname or alias.name}.{name}" for name in inside}
    return found


def outside_of_kernels(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, but not those of kernels that it makes."""
    for part in ast.iter_child_nodes(node):
        if not (isinstance(part, ast.FunctionDef) and decorators(part) & {"kernel", "inline"}):
            yield part
            yield from outside_of_kernels(part)


def called(node: ast.AST) -> Iterator[tuple[str, int]]:
    for part in outside_of_kernels(node):
        if isinstance(part, ast.Call):
            function = part.func
            if isinstance(function, ast.Name):
                yield function.id, part.lineno
            elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
                yield f"{function.value.id}.{function.attr}", part.lineno


def kernel_decorators(tree: ast.Module) -> set[str]:
    """`kernel`, and names that a module gives to `kernel` with options."""
    own = [node for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value]
    own = [node for node in own if name_of(node.value) == "kernel"]
    return {"kernel", *(name_of(t) for node in own for t in getattr(node, "targets", None) or [node.target])}


def entries() -> set[str]:
    """Functions that are compiled as entries: what is given to a compiler, by itself or with its name."""
    found = set()
    for tree in MODULES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and name_of(node.func) in COMPILERS:
                found |= {name_of(argument) for argument in node.args}
            elif isinstance(node, ast.Dict):
                found |= {name_of(value) for value in node.values}
            elif isinstance(node, ast.Tuple) and any(isinstance(part, ast.Constant) for part in node.elts):
                found |= {name_of(part) for part in node.elts}
    return found


def test_plain_python_code_calls_no_kernel() -> None:
    known = {
        ".".join(("bhemu", *path.with_suffix("").parts)): {
            function.name for function in functions(tree) if kernel_decorators(tree) & decorators(function)
        }
        for path, tree in MODULES.items()
    }
    assert sum(map(len, known.values())) > 500
    compiled = entries()
    found = []
    for path, tree in MODULES.items():
        scope = kernels_in_scope(path, known)
        for function in functions(tree):
            if decorators(function) & (COMPILED | kernel_decorators(tree)) or function.name in compiled:
                continue
            found += [f"{path}:{line} {function.name} calls {name}" for name, line in called(function) if name in scope]
    assert not found, "\n".join(found)


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_a_function_is_not_inlined_everywhere_and_nowhere() -> None:
    with pytest.raises(TypeError, match="forceinline"):
        kernel(seldom=True, forceinline=True)(lambda x: x)
