"""Wrong calls of every function on the reference pages (docs/api), made from its signature.

Each parameter gets values of types that its annotation does not name. A new public function, or a new parameter, is
found here by itself; one that does not check what it is given fails. Values of the right type that are out of range are
in test_arguments.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import re
from collections import abc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, SupportsIndex, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import bhemu
from bhemu import checks
from bhemu.errors import BhemuError
from tests.loader.boot_programs import program

pytestmark = pytest.mark.plain

PAGES = Path(bhemu.__file__).parents[1] / "docs" / "api"

NOT_MADE_BY_USERS = {"Words", "Config", "CoreView", "SrcView", "DstView", "ConfigView", "ChipTile", "EthernetTile"}
NOT_MADE_BY_USERS |= {"DramBank", "InterleavedDram", "ChipFirmware", "Core", "Snapshot", "ChipSnapshot", "Executable"}
NOT_MADE_BY_USERS |= {"RemoteChip", "Link", "Links", "LinkRecording"}
NOT_MADE_BY_USERS |= {"Block", "Condition", "WhileSemaphore", "Semaphore", "Counters", "DataFormat", "Packed"}
"""Classes whose objects other functions give; nor are records of results (dataclasses)."""
MADE_BY_USERS = {"Harvesting", "Identity", "Matmul", "Traffic"}
"""Dataclasses that users make."""

VALUES: dict[str, list[Any]] = {
    "None": [None],
    "bool": [True, np.bool_(False)],
    "int": [5, np.int64(-3)],
    "float": [1.5, np.float32(2)],
    "str": ["\0nosuch"],
    "bytes": [b"\0x"],
    "sequence": [[object()], (object(),)],
    "mapping": [{1.5: object()}],
    "function": [print],
    "object": [object()],
}
KINDS: dict[str, set[str]] = {
    # what an annotation accepts, beside its own classes, as a word in it
    "None": {"None"},
    "bool": {"bool"},
    "int": {"int"},
    "SupportsIndex": {"int", "bool"},
    "float": {"int", "float"},
    "str": {"str"},
    "Path": {"str"},
    "bytes": {"bytes"},
    "Bytes": {"bytes"},
    "Sequence": {"sequence"},
    "Iterable": {"sequence", "mapping"},
    "tuple": {"sequence"},
    "list": {"sequence"},
    "Mapping": {"mapping"},
    "dict": {"mapping"},
    "Callable": {"function"},
    "ThreadFunction": {"function"},
    "ReadHost": {"function"},
    "WriteHost": {"function"},
    "Place": {"sequence"},
    "Tiles": {"sequence", "mapping"},
    "TileShape": {"sequence"},
    "SourceFormat": {"sequence"},
    "ArrayLike": {"int", "float", "sequence", "bool"},
    "Dimension": {"str", "int"},
}


@dataclasses.dataclass(frozen=True)
class Function:
    """A public function, or a method of a public class."""

    name: str
    call: Callable[..., Any]
    owner: type | None = None


def objects() -> Iterator[tuple[str, Any, list[str] | None]]:
    """Names and objects of the reference pages, and the names of the members that they show, if not all."""
    for page in sorted(PAGES.glob("*.md")):
        for found in re.finditer(r"^::: (\S+)\n((?:[ ].*\n|\n)*)", page.read_text() + "\n", re.MULTILINE):
            name, members = found[1], re.search(r"members: \[(.*)\]", found[2])
            with contextlib.suppress(ModuleNotFoundError):
                module = importlib.import_module(name)
                names = members[1].split(", ") if members else [n for n in dir(module) if not n.startswith("_")]
                for member in names:
                    if getattr(getattr(module, member), "__module__", None) == name:
                        yield member, getattr(module, member), None
                continue
            home, _, member = name.rpartition(".")
            yield member, getattr(importlib.import_module(home), member), members[1].split(", ") if members else None


def functions() -> Iterator[Function]:
    """All public functions and methods that take something."""
    for name, found, shown in objects():
        if not inspect.isclass(found):
            if callable(found) and inspect.isfunction(inspect.unwrap(found)):
                yield Function(name, found)
            continue
        if issubclass(found, BaseException):
            continue
        for member, raw in inspect.getmembers_static(found):
            if (member.startswith("_") and member != "__init__") or (shown and member not in shown):
                continue
            made = (not dataclasses.is_dataclass(found) and name not in NOT_MADE_BY_USERS) or name in MADE_BY_USERS
            if member == "__init__" and not made:
                continue
            if isinstance(raw, (staticmethod, classmethod)):
                yield Function(f"{name}.{member}", getattr(found, member))
            elif inspect.isfunction(raw) and inspect.unwrap(raw).__module__.startswith("bhemu."):
                yield Function(name if member == "__init__" else f"{name}.{member}", raw, found)


FUNCTIONS = {function.name: function for function in functions()}


def parameters(function: Function) -> list[inspect.Parameter]:
    known = list(inspect.signature(function.call).parameters.values())
    return known[1:] if function.owner else known


def wrong_values(annotation: str) -> list[Any]:
    """Values whose types an annotation does not name."""
    words = set(re.findall(r"\w+", re.sub(r"\[.*\]", "", annotation)))
    if words & {"Any", "object"}:
        return []
    accepted = set().union(*(KINDS.get(word, set()) for word in words))
    return [value for kind, values in VALUES.items() if kind not in accepted for value in values]


CALLS = [
    (name, parameter.name)
    for name, f in FUNCTIONS.items()
    for parameter in parameters(f)
    if wrong_values(str(parameter.annotation))
]


BITS = np.zeros((16, 16), np.uint32)
BY_NAME: dict[str, Any] = {
    # right values of required parameters, so that it is the tested one that is refused
    "content": b"text",
    "data": bytes(2048),
    "shape": (32, 32),
    "ChipFirmware.launch.kernels": {},
    "space": "config",
    "data_format": "bf16",
    "slopes": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "encode.mnemonic": "SEMWAIT",
    "elementwise_bits.mnemonic": "ELWADD",
    "EthernetTile.start.core": "E0",
    "unpack_convert.bits": np.zeros((32, 32), np.uint16),
}


def sample(function: Function, parameter: inspect.Parameter) -> Any:
    """A value of a type that a parameter takes."""
    for name in (f"{function.name}.{parameter.name}", parameter.name):
        if name in BY_NAME:
            return BY_NAME[name]
    call: Any = inspect.unwrap(function.call)
    hint = get_type_hints(call, localns=checks._Names(call.__globals__))[parameter.name]
    text = str(parameter.annotation)
    if parameter.name in ("core", "cores") and "str" in text:
        return "B"
    if text.startswith("ArrayLike"):
        return BITS if function.name.endswith("_bits") else np.zeros((16, 16))
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for kind, value in ((str, "x"), (bool, False), (int, 1), (SupportsIndex, 1), (float, 1.0), (Path, Path("x"))):
        if kind in options:
            return value
    if get_origin(hint) in (abc.Sequence, abc.Iterable, list, tuple):
        return []
    if get_origin(hint) in (abc.Mapping, dict):
        return {}
    if get_origin(hint) is np.ndarray:
        return np.zeros((32, 32), np.float32)
    if get_origin(hint) is abc.Callable:
        return print
    found = next((kind for kind in options if isinstance(kind, type) and kind not in (Any, NoneType)), None)
    if found is None:
        return np.zeros((32, 32), np.float32)
    if inspect.isabstract(found):
        found = type(found.__name__, (found,), dict.fromkeys(found.__abstractmethods__))
    return found.__new__(found)


@pytest.fixture(scope="module")
def given() -> SimpleNamespace:
    machine, chip = bhemu.Machine(), bhemu.Chip("p100")
    machine.load(program("loop: j loop"), "B")
    declared = bhemu.Program("declared")
    tensor = declared.input("a", ("M", "N"), "bf16")
    receivers = {"Tile": machine._tile if hasattr(machine, "_tile") else bhemu.Tile(), "Machine": machine, "Chip": chip}
    receivers |= {
        "ChipTile": chip[1, 2],
        "DramBank": chip.dram[0],
        "InterleavedDram": chip.interleaved,
        "Program": declared,
    }
    receivers |= {"ChipSnapshot": chip.snapshot(), "Tensor": tensor, "EthernetTile": bhemu.Chip().ethernet[0]}
    tile = bhemu.Tile()
    receivers |= {"DstView": tile.dst, "SrcView": tile.srca, "ConfigView": tile.config}
    return SimpleNamespace(receivers=receivers)


def receiver(function: Function, given: SimpleNamespace) -> list[Any]:
    if function.owner is None:
        return []
    return [given.receivers.get(function.owner.__name__) or object.__new__(function.owner)]


def test_there_are_more_than_400_wrong_calls() -> None:
    count = sum(len(wrong_values(str(p.annotation))) for f in FUNCTIONS.values() for p in parameters(f))
    assert count > 400


@pytest.mark.parametrize(("name", "wrong"), CALLS, ids=[f"{name}({wrong})" for name, wrong in CALLS])
def test_values_of_other_types_are_refused_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: SimpleNamespace, name: str, wrong: str
) -> None:
    monkeypatch.chdir(tmp_path)
    function = FUNCTIONS[name]
    known = parameters(function)
    [tested] = [parameter for parameter in known if parameter.name == wrong]
    found = []
    for value in wrong_values(str(tested.annotation)):
        positional, named = receiver(function, given), {}
        for parameter in known:
            if parameter is tested:
                content = value
            elif parameter.default is parameter.empty and parameter.kind not in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            ):
                content = sample(function, parameter)
            else:
                continue
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                positional.append(content)
            elif parameter.kind is parameter.VAR_KEYWORD:
                named["wait_sem_cond"] = content
            else:
                named[parameter.name] = content
        try:
            function.call(*positional, **named)
        except BhemuError as error:
            if not error.remedy:
                found.append(f"{value!r}: no remedy: {error}")
            elif not any(part in error.message for part in (wrong, repr(value), "data format")):
                found.append(f"{value!r}: another reason: {error}")
        except BaseException as error:
            found.append(f"{value!r}: {type(error).__name__}: {error}")
        else:
            found.append(f"{value!r}: accepted")
    assert not found, "\n".join(found)
