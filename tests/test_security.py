"""What docs/security.md says of the package's own code: no pickle, no evaluated text, no shell, no open port."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import bhemu
from bhemu.gdb.server import parse_address

pytestmark = pytest.mark.plain

PACKAGE = Path(bhemu.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
TREES = {str(file.relative_to(PACKAGE)): ast.parse(file.read_text(encoding="utf-8")) for file in FILES}
GENERATED = {"machine/compiler.py", "machine/codegen.py"}
"""Their `exec` takes text that is made of the instruction table."""


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """File, dotted name of the function, and the call."""
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield name, ast.unparse(node.func), node


def imported() -> Iterator[tuple[str, str]]:
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from ((name, alias.name.split(".")[0]) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield name, node.module.split(".")[0]


def test_package_imports_nothing_that_reads_pickles() -> None:
    assert not {(file, module) for file, module in imported() if module in ("pickle", "shelve", "dill", "joblib")}


def test_every_array_file_is_read_without_pickles() -> None:
    loads = [call for _, function, call in calls() if function in ("np.load", "numpy.load")]
    assert loads
    for call in loads:
        given = {word.arg: ast.unparse(word.value) for word in call.keywords}
        assert given.get("allow_pickle") == "False"


def test_text_is_evaluated_only_where_it_is_made_of_the_instruction_table() -> None:
    assert {file for file, function, _ in calls() if function in ("eval", "exec")} <= GENERATED


def test_no_shell_is_started() -> None:
    for file, function, call in calls():
        assert function not in ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"), file
        shells = [ast.unparse(word.value) for word in call.keywords if word.arg == "shell"]
        assert shells in ([], ["False"]), file


def test_network_is_for_gdb_alone_and_on_this_machine_by_default() -> None:
    known = {"socket", "http", "urllib", "requests", "asyncio", "socketserver", "ssl"}
    local = {"client/server.py", "client/attached.py", "client/messages.py"}  # sockets in the file system
    assert {file for file, module in imported() if module in known} == {"gdb/server.py", *local}
    assert not [file for file in local if "AF_INET" in (PACKAGE / file).read_text()]
    assert parse_address(":3333") == ("127.0.0.1", 3333)
