"""Damaged files and texts for all that bhemu reads: only errors with a category and a remedy may come out."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import shutil
import signal
import struct
import tempfile
import traceback
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np

from bhemu.api import plain_file
from bhemu.api.chip_snapshot import ChipSnapshot
from bhemu.api.tile import Tile
from bhemu.capi.attach import parse_tiles
from bhemu.chip.pcie.pci import BAR4
from bhemu.compare.trace import read_trace
from bhemu.conformance.vector_file import VectorFile
from bhemu.debugger.expressions import evaluate
from bhemu.errors import BhemuError
from bhemu.formats import files
from bhemu.fuzz.batch import Finding, Result, Task
from bhemu.isa.assembler import assemble_program, disassemble
from bhemu.isa.instructions import encode
from bhemu.isa.tile_registers import address_of
from bhemu.loader.elf import load_elf
from bhemu.loader.firmware_layout import read_layouts
from bhemu.recording import CoreRecorder
from bhemu.recording.parts import SUFFIX, Part, Reader, Writer

SECONDS: Final = 5.0
"""An input may take so long."""
_MOST_FINDINGS: Final = 30
_INTERESTING: Final = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
PREFIX: Final = "input-"


class _TooLongError(Exception):
    """An input has taken longer than it may."""


@dataclass(frozen=True)
class Parser:
    """Something that reads a file.

    Attributes:
        read: reads it, and all that it gives.
        seeds: content of valid files.
        sealed: puts the digest right after damage, so that what is after it is reached.
        share: how often it is chosen; less where reading takes long.
    """

    read: Callable[[Path], object]
    seeds: Callable[[], list[bytes]]
    sealed: Callable[[bytes], bytes] | None = None
    share: int = 1


# --- valid files ------------------------------------------------------------------------------------------------------


def _elf() -> list[bytes]:
    """An ELF file with code, data and symbols, made by hand."""
    code = struct.pack("<4I", 0x13, 0x13, 0x13, 0x6F)
    names = b"\0_start\0main\0"
    symbols = bytes(16) + struct.pack("<IIIBBH", 1, 0x10000, 8, 0x12, 0, 1)
    symbols += struct.pack("<IIIBBH", 8, 0x10008, 8, 0x12, 0, 1)
    sections = b"\0.text\0.symtab\0.strtab\0"
    parts, offset = [code, symbols, names, sections], 52 + 2 * 32
    places = []
    for part in parts:
        places.append(offset)
        offset += len(part)
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    header = ident + struct.pack("<HHIIIIIHHHHHH", 2, 243, 1, 0x10000, 52, offset, 0, 52, 32, 2, 40, 5, 4)
    loads = struct.pack("<8I", 1, places[0], 0x10000, 0x10000, len(code), len(code), 5, 4)
    loads += struct.pack("<8I", 1, places[2], 0x20000, 0x20000, len(names), 64, 6, 4)
    table = bytes(40)
    table += struct.pack("<10I", 1, 1, 6, 0x10000, places[0], len(code), 0, 0, 4, 0)
    table += struct.pack("<10I", 7, 2, 0, 0, places[1], len(symbols), 3, 1, 4, 16)
    table += struct.pack("<10I", 15, 3, 0, 0, places[2], len(names), 0, 0, 1, 0)
    table += struct.pack("<10I", 0, 3, 0, 0, places[3], len(sections), 0, 0, 1, 0)
    return [header + loads + b"".join(parts) + table]


def _npy() -> list[bytes]:
    arrays = (np.zeros((2, 3), np.float32), np.arange(5, dtype=np.int8), np.ones((1, 1, 4), np.uint32, order="F"))
    return [files.npy(array) for array in arrays]


def _vectors() -> list[bytes]:
    meta = {"family": "fuzz", "version": 1, "cases": 1, "l1_base": 0, "l1_size": 16}
    one = np.array([0, 1], np.uint32)
    content = io.BytesIO()
    np.savez(
        content,
        meta=np.array(json.dumps(meta)), label_names=np.array([b"a"]), label_ptr=one, label_id=one[:1],
        name=np.array([b"case"]), state=one[:1], prog_ptr=one, prog_thread=one[:1], prog_word=one[1:],
        init_l1_ptr=one, init_l1_start=one[:1], init_l1_len=one[1:], init_l1_val=np.array([7], np.uint8),
        exp_gpr_ptr=one, exp_gpr_start=one[:1], exp_gpr_len=one[1:], exp_gpr_val=one[1:],
    )  # fmt: skip
    return [content.getvalue()]


def _layouts() -> list[bytes]:
    text = resources.files("bhemu.loader").joinpath("data/firmware_layouts.toml").read_text()
    tables = text.split("[[layout]]")
    return [("[[layout]]" + table).encode() for table in tables[1:3]]


def _traces() -> list[bytes]:
    lines: list[dict[str, Any]] = [
        {"trace": "libttsim", "version": 2},
        {"call": "init"},
        {"call": "pci_config_rd32", "bdf": 0, "offset": 16},
        {"answer": "00000000"},
        {"call": "pci_mem_wr_bytes", "address": hex(BAR4), "bytes": "01020304"},
        {"call": "pci_mem_rd_bytes", "address": hex(BAR4), "size": 4},
        {"answer": "01020304"},
        {"call": "clock", "clocks": 1000},
        {"host_read": "0x1000", "bytes": "00"},
        {"again": 9, "calls": 2},
    ]
    return ["\n".join(json.dumps(line) for line in lines).encode()]


_MAGIC: Final = b"bhemu chip 3\n"


def _snapshots() -> list[bytes]:
    """The file of a chip snapshot with almost nothing in it."""
    empty = (np.zeros(0, np.int64), np.zeros((0, 512), np.uint64))
    state = {
        "layout": "x", "harvesting": ((1,), 0, ()), "simulator_order": False, "tiles": empty, "clocks": {"now": 1},
        "dram": tuple(({0: b"page"} if i == 0 else {}) for i in range(8)), "card": empty,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "snapshot"
        plain_file.save(
            path, _MAGIC, {"state": state, "files": (("a.elf", _elf()[0]),), "programs": {(1, 2): ((0, 0, True),)}}
        )
        return [path.read_bytes()]


def _sealed_snapshot(content: bytes) -> bytes:
    rest = content[len(_MAGIC) + 32 :]
    return _MAGIC + hashlib.blake2b(rest, digest_size=32).digest() + rest


_FRAME: Final = struct.Struct("<4sIII")
"""Of a recording: magic, lengths of the description and of the content, checksum."""


def _recordings() -> list[bytes]:
    """The file of a recording: a few instructions of core B, which push two words."""
    tile = Tile()
    for number, word in enumerate(
        (0x00500513, 0xFFF50513, 0xFE051EE3, encode("NOP") << 2 | encode("NOP") >> 30, 0x0000006F)
    ):
        tile.record.l1_u32[number] = word & 0xFFFFFFFF
    recorder = CoreRecorder()
    recorder.attach(tile)
    tile.cores.store(address_of("control", "SOFT_RESET_0"), 0x47000)  # all but B stay in reset
    tile.cores.advance(40)
    log, initiators = recorder.cut(), tile.record["niu_initiator"].copy()
    part = Part((1, 2), 0, 40, 1, 0, log, recorder.first_push, [(0, bytes(tile.record.l1[:20]))], initiators)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"fuzz{SUFFIX}"
        writer = Writer(path, {"chip": "fuzz"}, 1 << 30)
        writer.add(part)
        writer.close()
        return [path.read_bytes()]


def _sealed_recording(content: bytes) -> bytes:
    """Lengths of the frames as far as they fit, and checksums made right."""
    found, at = bytearray(content), 0
    while at + _FRAME.size <= len(found):
        magic, text, size, _ = _FRAME.unpack_from(found, at)
        start = at + _FRAME.size
        text = min(text, len(found) - start)
        size = min(size, len(found) - start - text)
        check = zlib.crc32(found[start + text : start + text + size], zlib.crc32(found[start : start + text]))
        _FRAME.pack_into(found, at, magic, text, size, check)
        at = start + text + size
    return bytes(found)


def _assembly() -> list[bytes]:
    words = (
        encode("SETADCXX", 4, x_end2=15),
        encode("UNPACR"),
        encode("SFPLOADI", 1, 2, 3),
        encode("STALLWAIT", 64, 8),
    )
    text = "\n".join(disassemble(word) for word in words)
    return [text.encode(), b"TTI_SETADCXX(4, 15, 0x0) // packer\n.word 0x2000000\n.ttinsn 12 ; x\nWRCFG 1, 0b1, 0o7"]


class _NoScope:
    """What expressions of the debugger find."""

    def register(self, name: str) -> int:
        return 5

    def name_value(self, name: str) -> int:
        return 6

    def name_address(self, name: str) -> int:
        return 0x1000

    def load(self, address: int) -> int:
        return address & 0xFF


# --- reading ----------------------------------------------------------------------------------------------------------


def _read_elf(path: Path) -> None:
    executable = load_elf(path)
    executable.describe(executable.entry)
    executable.addresses_of_line("a.c", 1)


def _read_vectors(path: Path) -> None:
    file = VectorFile(path)
    for case in [file.case(index) for index in range(min(len(file), 4))]:
        file.expected(case.index, file.initial(case.index))


def _read_recording(path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        shutil.copyfile(path, Path(directory) / f"input{SUFFIX}")
        for part in Reader(Path(directory)).parts():
            assert part.log.executed.shape == part.log.cycles.shape


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


PARSERS: Final = {
    "elf": Parser(_read_elf, _elf, share=1),
    "npy": Parser(files.load, _npy, share=30),
    "npz": Parser(_read_vectors, _vectors, share=1),
    "toml": Parser(read_layouts, _layouts, share=4),
    "trace": Parser(read_trace, _traces, share=40),
    "snapshot": Parser(ChipSnapshot.load, _snapshots, _sealed_snapshot, share=2),
    "recording": Parser(_read_recording, _recordings, _sealed_recording, share=2),
    "assembly": Parser(lambda path: assemble_program(_text(path)), _assembly, share=30),
    "expression": Parser(
        lambda path: evaluate(_text(path), _NoScope()),
        lambda: [b"*(main + 4 * $a0) & 0xff", b"-~1 << 3 | &x == 0b11", b"($pc + 0x10) % 3 != 1 && !y"],
        share=60,
    ),
    "tiles": Parser(lambda path: parse_tiles(_text(path)), lambda: [b"1-2,3-4, 10-11"], share=60),
}
"""Readers by name."""


@cache
def seeds(name: str) -> list[bytes]:
    """Valid files of a kind."""
    return PARSERS[name].seeds()


def mutated(chance: random.Random, content: bytes, other: bytes) -> bytes:
    """Content with a few places changed, left out, repeated, cut off, or taken from elsewhere."""
    found = bytearray(content)
    for _ in range(1 + chance.randrange(4) * chance.randrange(3)):
        if not found:
            break
        at = chance.randrange(len(found))
        kind = chance.randrange(8)
        if kind == 0:
            found[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            found[at] = chance.randrange(256)
        elif kind == 2:
            size = chance.choice((1, 2, 4, 8))
            number = chance.choice(_INTERESTING) & (1 << 8 * size) - 1
            found[at : at + size] = number.to_bytes(size, chance.choice(("little", "big")))
        elif kind == 3:
            del found[at : at + chance.randrange(1, 16)]
        elif kind == 4:
            found[at:at] = found[at : at + chance.randrange(1, 32)]
        elif kind == 5:
            del found[at:]
        elif kind == 6:
            start = chance.randrange(len(other) or 1)
            found[at : at + chance.randrange(16)] = other[start : start + chance.randrange(1, 24)]
        else:
            found[at : at + 1] = chance.choice(
                (b"\0", b'"', b"[", b"{", b"}", b"-", b"9" * 40, b"\n", b"\xff\xff", b"e9", b"(")
            )
    return bytes(found)


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def too_long(number: int, frame: FrameType | None) -> None:
        raise _TooLongError(f"takes longer than {SECONDS:g} s")

    before = signal.signal(signal.SIGPROF, too_long)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def tried(name: str, path: Path) -> tuple[str, str] | None:
    """What reading a file fails with, as title and text, unless it is read or refused as it should be.

    Seconds are those of the processor: on a busy machine a file takes no longer.
    """
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            PARSERS[name].read(path)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except BhemuError as error:
        if error.remedy or error.message:
            return None
        return f"{name}: an error that says nothing", type(error).__name__
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in last if "bhemu" in frame.filename and "fuzz" not in frame.filename]
        where = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "nowhere"
        return f"{name}: {type(error).__name__} in {where}", "".join(traceback.format_exception(error))
    return None


def _small(name: str, title: str, content: bytes, path: Path) -> bytes:
    """A shorter input that fails in the same way."""
    size = max(1, len(content) // 2)
    for _ in range(400):
        for at in range(0, len(content), size):
            shorter = content[:at] + content[at + size :]
            path.write_bytes(shorter)
            failed = tried(name, path)
            if failed is not None and failed[0] == title:
                content = shorter
                break
        else:
            if size == 1:
                break
            size //= 2
    return content


def run(task: Task) -> Result:
    """Read `task.size` damaged files."""
    chance = random.Random(task.seed)
    result = Result()
    names = [name for name, parser in PARSERS.items() for _ in range(parser.share)]
    memory = Path("/dev/shm")  # files that are read once need no disk
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory, _limited():
        path = Path(directory) / "input"
        for _ in range(task.size):
            name = chance.choice(names)
            parser = PARSERS[name]
            content = mutated(chance, chance.choice(seeds(name)), chance.choice(seeds(chance.choice(names))))
            if parser.sealed is not None and chance.randrange(8):
                content = parser.sealed(content)
            path.write_bytes(content)
            result.counts[name] += 1
            failed = tried(name, path)
            if failed is None:
                continue
            result.counts["failures"] += 1
            title, text = failed
            if any(known.title == title for known in result.findings) or len(result.findings) >= _MOST_FINDINGS:
                continue
            content = _small(name, title, content, path)
            task.keep.mkdir(parents=True, exist_ok=True)
            kept = task.keep / f"{PREFIX}{name}-{hashlib.sha256(content).hexdigest()[:12]}"
            kept.write_bytes(content)
            result.findings.append(Finding(title, f"seed {task.seed}\n{text}", str(kept)))
    result.done = task.size
    return result


def replay(path: Path) -> list[str]:
    """Read a kept input again."""
    name = path.name.removeprefix(PREFIX).partition("-")[0]
    with _limited():
        failed = tried(name, path)
    return [] if failed is None else list(failed)
