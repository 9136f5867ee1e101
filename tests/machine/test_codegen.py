"""Machine code: what is inlined, and data that nearly fill a page beside many calls of the system's functions."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys

import numpy as np
import pytest
from numba import njit
from numba.core.errors import NumbaError
from numba.extending import overload
from numba.np.numpy_support import from_dtype

from bhemu.machine.codegen import JIT, compile_function
from bhemu.machine.kernel import kernel

pytestmark = pytest.mark.skipif(not JIT, reason="nothing is compiled")

PROGRAM = """
import sys
import llvmlite.binding as llvm
from bhemu.machine.codegen import give_room, numba_config, cpu_target

names = "abs atoi labs atol strlen memchr strchr strstr toupper tolower isalpha isdigit rand clock".split()
calls = "".join(f" %r{i} = call i64 @{name}(i64 %a)\\n" for i, name in enumerate(names))
text = "".join(f"declare i64 @{name}(i64)\\n" for name in names) + f'''
@data = global [{int(sys.argv[1])} x i8] c"{"x" * int(sys.argv[1])}"
define i64 @f(i64 %a) {{
 %v = load volatile i64, ptr @data
{calls} ret i64 %v
}}
'''
module = llvm.parse_assembly(text)
if sys.argv[2] == "room":
    give_room(module)
cpu_target.target_context.codegen()
options = {"opt": numba_config.OPT}
cpu_target.target_context.codegen()._customize_tm_options(options)
machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(**options)
engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=True)
engine.add_object_file(llvm.ObjectFileRef.from_data(machine.emit_object(module)))
engine.finalize_object()
print(hex(engine.get_function_address("f")))
"""


def load(data: int, how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(data), how]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_without_room_data_that_nearly_fill_a_page_end_the_process() -> None:
    assert load(4000, "none").returncode != 0, "llvmlite makes room itself now: `give_room` is not needed any more"


@pytest.mark.parametrize("data", [2000, 3960, 4000, 4040, 4068, 8100])
def test_data_of_any_size_leave_room_for_the_addresses_of_functions(data: int) -> None:
    done = load(data, "room")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0x")


# --- what an entry consists of --------------------------------------------------------------------


@kernel
def called_once(x):  # type: ignore[no-untyped-def]
    """As large as LLVM would not inline it if it had another caller."""
    for i in range(100):
        x = (x ^ (x >> 7)) * (2 * i + 3) + (x >> (i & 15))
        x ^= x << 3 if x & i else x >> 5
    return x


@kernel(seldom=True)
def called_seldom(x):  # type: ignore[no-untyped-def]
    return x + 2


def an_entry(record, a, b):  # type: ignore[no-untyped-def]
    return called_once(a) if a > 0 else called_seldom(b)


def functions_of_entry() -> tuple[str, dict[str, str]]:
    """(symbol of the entry, linkage of each function that is left in its module after optimization)."""
    symbol, library = compile_function(an_entry, None, 2, from_dtype(np.dtype([("word", "i8")])))
    functions = [function for function in library._final_module.functions if not function.is_declaration]
    return symbol, {function.name: function.linkage.name for function in functions}


def test_of_an_entry_other_modules_see_only_its_c_function() -> None:
    symbol, linkages = functions_of_entry()
    assert [name for name, linkage in linkages.items() if linkage != "internal"] == [symbol]


def test_what_has_one_caller_is_inlined_unless_it_is_called_seldom() -> None:
    _, linkages = functions_of_entry()
    assert not [name for name in linkages if "called_once" in name]
    assert [name for name in linkages if "called_seldom" in name]


@kernel(seldom=True)
def called_with_what_it_does_not_use(x, unused):  # type: ignore[no-untyped-def]
    return x + 1


def another_entry(record, a, b):  # type: ignore[no-untyped-def]
    return called_with_what_it_does_not_use(a, b)


@njit
def called_from_python(a, b):  # type: ignore[no-untyped-def]
    return called_with_what_it_does_not_use(a, b)


def test_a_kernel_of_an_entry_that_is_loaded_is_not_taken_for_that_of_another_function() -> None:
    """LLVM leaves arguments out in the entry, and a function of Numba's own calls the kernel with all of them."""
    symbol, library = compile_function(another_entry, None, 2, from_dtype(np.dtype([("word", "i8")])))
    entry = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 4)(library.get_pointer_to_function(symbol))
    assert entry(0, 4, 7) == 5
    assert called_from_python(4, 7) == 5


@pytest.mark.parametrize(("room", "is_aligned"), [("bhemu.tensix.matrix.dot", True), ("bhemu.chip.clock.run", False)])
def test_frames_of_units_with_vectors_are_aligned_to_the_widest_registers(room: str, is_aligned: bool) -> None:
    def entry_of_a_room(record, a, b):  # type: ignore[no-untyped-def]
        return called_once(a) + b

    entry_of_a_room.__module__ = room
    _, library = compile_function(entry_of_a_room, None, 2, from_dtype(np.dtype([("word", "i8")])))
    assert ("alignstack=64" in str(library._final_module)) == is_aligned


@kernel
def with_a_closure(x):  # type: ignore[no-untyped-def]
    def more(y):  # type: ignore[no-untyped-def]
        return y + x

    return more(2)


@kernel
def with_arrays(x):  # type: ignore[no-untyped-def]
    values = np.arange(x)
    return (values + values)[0]


@pytest.mark.parametrize("refused", [with_a_closure, with_arrays])
def test_kernels_for_which_steps_of_numba_are_left_out_are_refused(refused) -> None:  # type: ignore[no-untyped-def]
    def entry(record, a, b):  # type: ignore[no-untyped-def]
        return refused(a)

    with pytest.raises(NumbaError):
        compile_function(entry, None, 2, from_dtype(np.dtype([("word", "i8")])))


def quotient(a, b):  # type: ignore[no-untyped-def]
    raise NotImplementedError  # only compiled code calls it


@overload(quotient)
def quotient_of(a, b):  # type: ignore[no-untyped-def]
    return lambda a, b: a // b


def test_what_numba_looks_up_once_belongs_to_the_options_of_the_caller() -> None:
    def call(a, b):  # type: ignore[no-untyped-def]
        return quotient(a, b)

    assert njit(error_model="numpy")(call)(1, 0) == 0
    with pytest.raises(ZeroDivisionError):
        njit(error_model="python")(call)(1, 0)


def test_what_is_inlined_does_not_depend_on_what_was_compiled_before() -> None:
    """Numba hands `forceinline` on to functions that are not compiled yet."""

    @kernel
    def smallest(a, b):  # type: ignore[no-untyped-def]
        return min(a, b)

    @kernel(forceinline=True)
    def inlined(a, b):  # type: ignore[no-untyped-def]
        return smallest(a, b)

    @kernel
    def called(a, b):  # type: ignore[no-untyped-def]
        return inlined(a, b)

    def entry(record, a, b):  # type: ignore[no-untyped-def]
        return called(a, b)

    compile_function(entry, None, 2, from_dtype(np.dtype([("word", "i8")])))
    inline = set()
    for function in (smallest, inlined, called):
        (known,) = function.overloads.values()
        code = known.library._final_module.get_function(known.fndesc.mangled_name)
        inline |= {function.__name__} if b"alwaysinline" in list(code.attributes) else set()
    assert inline == {"inlined"}


@pytest.mark.parametrize("is_on", [True, False])
def test_a_program_collects_garbage_after_compiling_as_it_did_before(is_on: bool) -> None:
    def entry(record, a, b):  # type: ignore[no-untyped-def]
        return a + b

    was_on = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        compile_function(entry, None, 2, from_dtype(np.dtype([("word", "i8")])))
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if was_on else gc.disable)()
