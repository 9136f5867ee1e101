"""What goes wrong at the C library is said as its contract wants (tile H20), with a remedy, and never hangs."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import bhemu
from tests.c_programs import compiler_or_skip
from tests.capi.library_client import run_client, run_forked
from tests.chip.noc_programs import ATOMIC, INCREMENT, INLINE, MULTICAST, READ, WRITE, at, rectangle, request
from tests.processes import finished
from tests.riscv.rv_asm import assemble

CONTRACT = re.compile(r"\[(?P<time>\d+)\] ERROR: (?P<category>\w+): (?P<function>\w+): (?P<text>.*)")
BEFORE, CLOCKS = 5, 200
"""Clocks that have passed before a case, and that a program gets."""


def check_contract(status: int, out: str, category: str, function: str, text: str) -> re.Match[str]:
    """The process has ended with the contract's message, in which there is `text`, and a remedy."""
    lines = out.splitlines()
    assert status == 1, out
    message = CONTRACT.fullmatch(lines[0])
    assert message, out
    assert (message["category"], message["function"]) == (category, function), out
    assert text in message["text"]
    assert any(line.startswith("  remedy: ") for line in lines[1:]), out
    assert "Traceback" not in out
    return message


# --- the host's accesses ----------------------------------------------------------------------------------------------

HOST = {
    # no tile, or one that has nothing
    "peek(9, 26, 0)": ("UndefinedBehavior", "coordinates 9-26 name no tile"),
    "poke(63, 63, 0, b'1234')": ("UndefinedBehavior", "coordinates 63-63 name no tile"),
    "peek(3, 0, 0)": ("UnimplementedFunctionality", "router only tile 3-0: an access to 0x0"),
    "peek(8, 2, 0)": ("UnimplementedFunctionality", "security tile 8-2: an access to 0x0"),
    "peek(11, 0, 0)": ("UnimplementedFunctionality", "PCIe tile 11-0: an access to 0x0"),
    "poke(8, 27, 0, b'1234')": ("UnimplementedFunctionality", "L2CPU tile 8-9: an access to 0x0"),
    "poke(1, 2, 0x200000, b'1234')": ("UndefinedBehavior", "Tensix tile 1-2: 4 bytes at 0x200000, L1 ends at 0x180000"),
    "peek(8, 0, 0x20000000)": ("UndefinedBehavior", "ARC tile 8-0: 4 bytes at 0x20000000, which is unmapped"),
    "peek(8, 0, 0x80000000)": ("UnimplementedFunctionality", "ARC tile 8-0: register 0x80000000 is not built"),
    "peek(20, 25, 0xFFB14004)": ("UnimplementedFunctionality", "Ethernet tile 1-1: register 0xffb14004 of an Ethernet"),
    "peek(20, 25, 0xFFB11000)": ("UndefinedBehavior", "tile 1-1: the host accesses 0xffb11000, where an Ethernet"),
    # where only the tile's own cores see something, and would wait for it
    "peek(1, 2, 0xFFEC0000)": ("UndefinedBehavior", "the host accesses 0xffec0000, which is unmapped"),
    "poke(1, 2, 0xFFE40000, bytes(4))": ("UndefinedBehavior", "the host accesses 0xffe40000, which is unmapped"),
    "peek(1, 2, 0xFFBD8000)": ("UndefinedBehavior", "the host accesses 0xffbd8000, which is unmapped"),
    # over the end of a tile's memory
    "peek(1, 2, 0x17FFFC, 8)": ("UndefinedBehavior", "Tensix tile 1-2: 8 bytes at 0x17fffc, L1 ends at 0x180000"),
    "poke(16, 11, 0x17FFFF, bytes(2))": ("UndefinedBehavior", "Tensix tile 16-11: 2 bytes at 0x17ffff, L1 ends at"),
    "peek(8, 0, 0x1007FFFC, 8)": ("UndefinedBehavior", "ARC tile 8-0: 8 bytes at 0x1007fffc, which is unmapped"),
    "peek(20, 25, 0x7FFFC, 8)": ("UndefinedBehavior", "Ethernet tile 1-1: 8 bytes at 0x7fffc, L1 ends at 0x80000"),
    "peek(17, 12, 0x1_0000_0000)": ("UndefinedBehavior", "4 bytes at 0x100000000, a channel has 4 GiB"),
    "peek(1, 2, 0xFFB12FFE)": ("UndefinedBehavior", "where there are registers of 4 bytes"),
    # over the end of a window, of BARs, and what lies between
    "peek(17, 12, 0x1FFFFC, 8)": ("NonContractualBehavior", "reach past the end of window 0"),
    "read(aim(203, 17, 12, 0) + 0xFFFFFFFC, 8)": ("NonContractualBehavior", "reach past the end of window 203"),
    "read(aim(0, 1, 2, 0), 1 << 22)": ("NonContractualBehavior", "4194304 bytes at 0x100000000 reach past the end"),
    "read(BAR4 + (32 << 30), 4)": ("UndefinedBehavior", "nothing is built at PCI address 0x1000000000"),
    "read(BAR0 + (512 << 20) - 4, 4)": ("ConfigurationError", "nothing is built at PCI address 0x11ffffffc"),
    "read(BAR2 + 0x800, 4)": ("ConfigurationError", "nothing is built at PCI address 0x120000800"),
    # multicast over what is not Tensix
    "write(aim(0, 8, 4, 0, start=(6, 3)), b'1')": ("UndefinedBehavior", "a multicast over tiles that are not Tensix"),
    "write(aim(0, 17, 13, 0, start=(1, 2)), b'1')": ("UndefinedBehavior", "a multicast over tiles that are not Tensix"),
    "write(aim(0, 20, 25, 0, start=(20, 25)), b'1')": ("UndefinedBehavior", "a multicast over tiles that are not"),
    "write(aim(0, 40, 40, 0, start=(1, 2)), b'1')": ("UndefinedBehavior", "coordinates 40-40 name no tile"),
    "write(aim(0, 2, 2, 0x17FFFF, start=(1, 2)), b'12')": ("UndefinedBehavior", "2 bytes at 0x17ffff, L1 ends at"),
    # a second card
    "config_write(8, 0x10, 0)": ("ConfigurationError", "PCI device 1 does not exist"),
    "config_read(0x100, 0)": ("ConfigurationError", "PCI bus 1, function 0"),
}
FUNCTIONS = {"peek": "pci_mem_rd_bytes", "read": "pci_mem_rd_bytes", "poke": "pci_mem_wr_bytes"}
FUNCTIONS |= {"write": "pci_mem_wr_bytes", "config_write": "pci_config_wr32", "config_read": "pci_config_rd32"}


@pytest.fixture(scope="module")
def host_refusals(library: Path) -> dict[str, tuple[int, str]]:
    return run_forked(library, f"init(); clock({BEFORE})", {call: call for call in HOST}, BHEMU_PYTHON="/no/python")


@pytest.mark.parametrize("call", HOST)
def test_accesses_of_the_host(call: str, host_refusals: dict[str, tuple[int, str]]) -> None:
    category, text = HOST[call]
    function = "libttsim_" + FUNCTIONS[call.partition("(")[0]]
    message = check_contract(*host_refusals[call], category, function, text)
    assert int(message["time"]) == BEFORE


def test_a_window_without_an_entry_leads_to_the_corner_of_the_chip(library: Path) -> None:
    """An entry of zeros is legal (H9): DRAM of the node at 0-0."""
    ended = run_client(
        library, "init(); write(BAR0 + (5 << 21) + 8, b'here'); assert peek(0, 0, 8) == b'here'; exit_()"
    )
    assert ended.status == 0, ended.out + ended.errors


# --- requests of a core -----------------------------------------------------------------------------------------------

HERE, THERE, DRAM, NOWHERE, L2CPU = at(1, 2), at(2, 2), at(17, 12), at(40, 40), at(8, 27)
READS = {"target": 0x10000, "target_hi": THERE, "back": 0x20000, "back_hi": HERE, "ctrl": READ, "length": 64}
WRITES = {"target": 0x10000, "target_hi": HERE, "back": 0x20000, "back_hi": THERE, "ctrl": WRITE, "length": 64}
MULTICASTS = WRITES | {"ctrl": WRITE | MULTICAST}
CORE: dict[str, tuple[dict[str, int], str, str]] = {
    "unaligned read": (READS | {"target": 0x10004}, "UndefinedBehavior", "differ modulo 16"),
    "unaligned write": (WRITES | {"back": 0x20008}, "UndefinedBehavior", "differ modulo 16"),
    "unaligned read within the tile": (READS | {"target": 4, "target_hi": HERE}, "UndefinedBehavior", "modulo 16"),
    "unaligned read from DRAM": (READS | {"target": 0x10010, "target_hi": DRAM}, "UndefinedBehavior", "modulo 64"),
    "unaligned atomic": (
        READS | {"target": 0x10002, "ctrl": ATOMIC, "length": INCREMENT},
        "UndefinedBehavior",
        "an atomic works on an aligned word of L1, not at 0x10002",
    ),
    "inline write to L1": (
        {"target": 0x10000, "target_hi": THERE, "ctrl": INLINE, "length": 0xF},
        "NonContractualBehavior",
        "not safe on Blackhole",
    ),
    "long and not aligned": (
        READS | {"length": 16385, "target": 0x10010, "back": 0x20010},
        "UndefinedBehavior",
        "what hardware splits begins at multiples of 64",
    ),
    "of no bytes": (READS | {"length": 0}, "UndefinedBehavior", "no bytes"),
    "over the end there": (READS | {"target": 0x17FFF0}, "UndefinedBehavior", "0x17fff0"),
    "over the end here": (READS | {"back": 0x17FFF0}, "UndefinedBehavior", "0x17fff0"),
    "over the end of DRAM": (READS | {"target": 0, "target_mid": 1, "target_hi": DRAM}, "UndefinedBehavior", "0x1000"),
    "to no tile": (READS | {"target_hi": NOWHERE}, "UndefinedBehavior", "coordinates 40-40 name no tile"),
    "to an L2CPU": (READS | {"target_hi": L2CPU}, "UnimplementedFunctionality", "L2CPU tile 8-9"),
    "to the host without a callback": (
        READS | {"target_hi": at(19, 24)},
        "ConfigurationError",
        "the client has no callback",
    ),
    "multicast over DRAM": (
        MULTICASTS | {"back_hi": rectangle((1, 2), (17, 12))},
        "UndefinedBehavior",
        "of the rectangle is not a Tensix tile (DRAM)",
    ),
    "multicast over Ethernet": (
        MULTICASTS | {"back_hi": rectangle((20, 25), (21, 25))},
        "UndefinedBehavior",
        "of the rectangle is not a Tensix tile (Ethernet)",
    ),
    "multicast with a corner in column 8": (
        MULTICASTS | {"back_hi": rectangle((1, 2), (8, 3))},
        "UndefinedBehavior",
        "of the rectangle is not a Tensix tile (L2CPU)",
    ),
    "multicast read": (
        READS | {"target_hi": rectangle((1, 2), (3, 3)), "ctrl": READ | MULTICAST},
        "UndefinedBehavior",
        "a read cannot be a multicast",
    ),
}


def words_of(fields: dict[str, int]) -> list[int]:
    """Instructions of a program that makes a request and stays in a loop."""
    code = assemble(request(**fields) + "\nstop: j stop\n")
    return list(struct.unpack(f"<{len(code) // 4}I", code))


@pytest.fixture(scope="module")
def core_refusals(library: Path) -> dict[str, tuple[int, str]]:
    cases = {
        name: f"release_b({words_of(fields)}); clock({CLOCKS}); print('nothing was refused')"
        for name, (fields, _, _) in CORE.items()
    }
    return run_forked(library, f"init(); clock({BEFORE})", cases)


@pytest.mark.parametrize("name", CORE)
def test_requests_of_a_core(name: str, core_refusals: dict[str, tuple[int, str]]) -> None:
    """With tile, core and pc of the store that starts it."""
    fields, category, text = CORE[name]
    status, out = core_refusals[name]
    message = check_contract(status, out, category, "libttsim_clock", text)
    words = words_of(fields)
    pc = 4 * words.index(struct.unpack("<I", assemble("sw t0, 0x40(a0)"))[0])
    assert f"Tensix tile 1-2: core B at 0x{pc:05x}: sw t0, 64(a0): " in message["text"]
    assert f"  at: tile 1-2, core B, pc {pc:#x}, instruction sw t0, 64(a0)" in out.splitlines()
    assert BEFORE <= int(message["time"]) < BEFORE + len(words)


def test_an_unknown_instruction_of_the_coprocessor(library: Path) -> None:
    """Core B pushes it; the T cores are in reset."""
    code = assemble("li a1, 0xFFE40000\nli a0, 0x1234\nsw a0, 0(a1)\nstop: j stop\n")
    words = struct.unpack(f"<{len(code) // 4}I", code)
    ended = run_client(library, f"init(); release_b({list(words)}); clock({CLOCKS}); print('nothing was refused')")
    text = "opcode 0x00 is not a Blackhole instruction"
    check_contract(ended.status, ended.out, "UndefinedBehavior", "libttsim_clock", text)
    pc = 4 * (len(words) - 2)
    assert f"  pushed by core B at 0x{pc:05x}" in ended.out.splitlines()
    assert f"  at: tile 1-2, core B, pc {pc:#x}, instruction sw a0, 0(a1)" in ended.out.splitlines()


# --- what clients do wrong --------------------------------------------------------------------------------------------


def test_an_unknown_message_to_the_management_firmware(library: Path) -> None:
    message = "poke(8, 0, 0x10000420, struct.pack('<8I', {code:#x}, 1, 2, 3, 4, 5, 6, 7)); "
    message += "poke(8, 0, 0x10000400, struct.pack('<I', 1)); poke(8, 0, 0x80030100, struct.pack('<I', 1 << 16))"
    read = "; print(peek(8, 0, 0x10000414), peek(8, 0, 0x10000520))"
    known = run_client(library, f"init(); {message.format(code=0x58)}{read}; exit_()")
    assert known.status == 0, known.out + known.errors
    assert known.out.splitlines()[0] == f"{bytes([1, 0, 0, 0])} {bytes([1, 0, 0, 0])}"
    ended = run_client(library, f"init(); {message.format(code=0x177)}; print('still there')")
    text = "message 0x77 to the management firmware is not built"
    check_contract(ended.status, ended.out, "UnimplementedFunctionality", "libttsim_pci_mem_wr_bytes", text)
    assert "remedy: known: 0x11, 0x21, " in ended.out
    many = run_client(library, "init(); poke(8, 0, 0x10000400, struct.pack('<I', 9)); poke(8, 0, 0x800B0000, bytes(4))")
    text = "message queue 0 has pointers 0 and 9"
    check_contract(many.status, many.out, "UndefinedBehavior", "libttsim_pci_mem_wr_bytes", text)


def test_a_client_that_never_clocks(library: Path) -> None:
    """Reads go on giving what is there, and a DMA is over when its doorbell has been written (H6, H8)."""
    ended = run_client(
        library,
        """
memory = bytes(range(256)) * 16
callback = READ(lambda address, pointer, size: ctypes.memmove(pointer, memory[address:][:size], size) and None)
lib.libttsim_set_pci_dma_mem_callbacks(callback, None)
init()
release_b([0x00100513, 0x10A02023, 0x0000006F])  # 1 to 0x100
assert {peek(1, 2, 0x100) for _ in range(1000)} == {bytes(4)}
aim(1, 1, 2, 0)
for offset, value in ((0x100, 1), (0x11C, 4096), (0x120, 0), (0x124, 0), (0x128, (1 << 21) + 0x1000), (0x12C, 0)):
    put(BAR2 + offset, value)
put(BAR2 + 0x104, 1)
assert word(BAR2 + 0x11C) == 0 and peek(1, 2, 0x1000, 4096) == memory
clock(3)
assert peek(1, 2, 0x100) == bytes([1, 0, 0, 0])
exit_()
""",
    )
    assert ended.status == 0, ended.out + ended.errors
    assert ended.out.startswith("[3] bhemu: ")


def test_a_chip_in_which_nobody_can_move_lets_clocks_pass(library: Path) -> None:
    """Core B waits for a mailbox that is never written: all clocks pass at once."""
    program = list(struct.unpack("<2I", assemble("li a0, 0xFFEC1000\nlw a1, 0(a0)\n")[:8]))
    ended = run_client(library, f"init(); release_b({program}); clock(0xFFFFFFFF); print('back'); exit_()")
    assert ended.status == 0, ended.out + ended.errors
    assert ended.out.startswith(f"back\n[{0xFFFFFFFF}] bhemu: ")


def test_two_chips_asked_of_one_library(library: Path) -> None:
    ended = run_client(library, f"init(); ctypes.CDLL({str(library)!r}).libttsim_init()")
    assert ended.status == 1
    assert ended.out.startswith("[0] ERROR: ConfigurationError: libttsim_init: the simulator is running already\n")


# --- what is missing --------------------------------------------------------------------------------------------------


def bhemu_library(directory: Path | str, **settings: str) -> tuple[int, str]:
    """(exit status, output) of `bhemu library` in a process with these environment variables."""
    clean = {name: value for name, value in os.environ.items() if name not in ("CC", "PATH")}
    command = [sys.executable, "-m", "bhemu", "library", str(directory)]
    done = finished(command, env=clean | {"PATH": os.environ["PATH"], "COLUMNS": "200"} | settings)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("settings", "text", "remedy"),
    [
        ({"PATH": "/nowhere"}, "there is no C compiler", "apt install gcc"),
        (
            {"CC": "/no/compiler"},
            "CC names '/no/compiler', which is not a program on this machine",
            "set CC to a C compiler",
        ),
        ({"CC": "cc '"}, 'CC is "cc \'": No closing quotation', "set it to a compiler's name"),
        ({"CC": "false"}, "cannot compile the library:\n  it ended with status 1", "headers of the C library"),
        ({"CC": "true"}, "cannot compile the library:\n  it ended with status 0", "headers of the C library"),
        ({"CC": "cc -include no-such-header.h"}, "no-such-header.h", "headers of the C library"),
        ({"CC": "{tmp}/noise"}, "noise cannot be started: Exec format error", "set CC to another compiler"),
    ],
)
def test_no_compiler(settings: dict[str, str], text: str, remedy: str, tmp_path: Path) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(b"\1\2\3")
    noise.chmod(0o700)
    status, out = bhemu_library(tmp_path / "made", **{k: v.format(tmp=tmp_path) for k, v in settings.items()})
    assert status == 1, out
    assert text in out
    assert re.search(rf"^  remedy: .*{re.escape(remedy)}", out, re.MULTILINE), out
    assert "Traceback" not in out
    assert not list(tmp_path.glob("made/*")), "nothing is left behind"


def test_a_compiler_with_options(tmp_path: Path, library: Path) -> None:
    assert library.is_file()  # so there is a compiler
    status, out = bhemu_library(tmp_path, CC="cc -g -O1")
    assert status == 0, out
    assert run_client(tmp_path / library.name, "init(); exit_()").status == 0


def test_directories_that_cannot_be_used(tmp_path: Path, library: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    (tmp_path / "taken" / library.name).mkdir(parents=True)
    (tmp_path / "other" / "soc_descriptor.yaml").mkdir(parents=True)
    cases = {
        file: (2, "is not a directory"),
        file / "below": (1, "cannot write into"),
        tmp_path / "taken": (1, f"cannot write {tmp_path / 'taken' / library.name}: Is a directory"),
        tmp_path / "other": (1, f"cannot write {tmp_path / 'other' / 'soc_descriptor.yaml'}: Is a directory"),
    }
    if os.geteuid():
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        cases |= {closed: (1, "cannot write into"), closed / "below": (1, "cannot write into")}
    for directory, (expected, text) in cases.items():
        status, out = bhemu_library(directory)
        assert status == expected, out
        assert text in out
        assert "  remedy: " in out
        assert "Traceback" not in out
    assert file.read_bytes() == b""


def test_a_directory_name_that_a_shell_would_not_take(tmp_path: Path, library: Path) -> None:
    directory = tmp_path / "two words's"
    status, out = bhemu_library(directory)
    assert status == 0, out
    shown = subprocess.run(
        ["sh", "-c", f'{out.splitlines()[1]}; echo "$TT_METAL_SIMULATOR"'], capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"{directory / library.name}\n"


C_CLIENT = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words)
{
    void *library = count > 1 ? dlopen(words[1], RTLD_NOW) : NULL;
    if (!library)
        return 9;
    ((void (*)(void))dlsym(library, "libttsim_init"))();
    ((void (*)(unsigned))dlsym(library, "libttsim_clock"))(5);
    ((void (*)(void))dlsym(library, "libttsim_exit"))();
    return 0;
}
"""


def c_client(directory: Path) -> Path:
    """A client without Python."""
    (directory / "client.c").write_text(C_CLIENT)
    compiler = compiler_or_skip("NO CLIENT WITHOUT PYTHON IS TRIED")
    subprocess.run([*compiler, "client.c", "-o", "client", "-ldl"], cwd=directory, check=True)
    return directory / "client"


@pytest.mark.skipif("SANITIZED" in os.environ, reason="the sanitizers' runtime has to be loaded first")
def test_clients_without_python(library: Path, tmp_path: Path) -> None:
    client = c_client(tmp_path)
    alone = Path(shutil.copy(library, tmp_path))  # and without the description
    for used in (library, alone):
        done = finished([client, used], env={"PATH": "/nowhere"})
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith("[5] bhemu: ")
    done = finished([client, alone], env={"PATH": "/nowhere", "BHEMU_PROCESS": "own"})
    message = CONTRACT.match(done.stdout)
    assert message, done.stdout
    assert (message["category"], message["function"]) == ("ConfigurationError", "libttsim_init")
    assert "there is no Python for a process of the simulator's own" in message["text"]
    assert "BHEMU_PYTHON" in done.stdout


@pytest.mark.skipif("SANITIZED" in os.environ, reason="debug information has paths")
def test_no_path_of_this_machine_is_in_the_library(library: Path) -> None:
    content = library.read_bytes()
    for path in (Path(bhemu.__file__).parent, Path(sys.prefix), Path.home()):
        assert str(path).encode() not in content


def test_two_copies_in_one_process_have_a_chip_each(library: Path, tmp_path: Path) -> None:
    copy = shutil.copy(library, tmp_path)
    script = f"init(); poke(1, 2, 0, b'one'); clock(3); ctypes.CDLL({str(copy)!r}).libttsim_init(); "
    ended = run_client(library, script + "assert peek(1, 2, 0, 3) == b'one'; exit_()")
    assert ended.status == 0, ended.out + ended.errors
    assert sorted(re.findall(r"^\[(\d)\] bhemu", ended.out, re.MULTILINE)) == ["0", "3"]
