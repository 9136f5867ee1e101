"""The functions of the C library, called through ctypes in processes of their own (tile H1 to H12, H20)."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from bhemu.capi.explain import CANNOT
from bhemu.capi.refusals import refusal_text
from bhemu.isa.assembler import assemble as tensix
from tests.capi.library_client import run_client, run_forked

CALLS = ["set_pci_dma_mem_callbacks", "init", "exit", "pci_config_rd32", "pci_config_wr32", "clock"]
CALLS += ["pci_mem_rd_bytes", "pci_mem_wr_bytes", "tile_rd_bytes", "tile_wr_bytes"]
NOP, LOOP = 0x00000013, 0x0000006F
ONE_TO_X1, X1_TO_400 = 0x00100093, 0x40102023


def check(library: Path, script: str, **environment: str) -> str:
    """Standard output of a script that must end well."""
    ended = run_client(library, script, **environment)
    assert ended.status == 0, ended.out + ended.errors
    return ended.out


@pytest.fixture(params=["client", "own"])
def process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the simulator runs: in the client's process, or in one of its own."""
    monkeypatch.setenv("BHEMU_PROCESS", request.param)
    return str(request.param)


in_both_processes = pytest.mark.usefixtures("process")


def test_every_function_is_exported(library: Path) -> None:
    check(library, f"for name in {CALLS!r}: getattr(lib, 'libttsim_' + name)")


@in_both_processes
def test_clients_count_cards_and_size_bars(library: Path) -> None:
    check(
        library,
        """
init()
assert [config_read(n << 3, 0) for n in range(32)] == [0xB1401E52] + 31 * [0xFFFFFFFF]
assert [config_read(0, o) for o in (0x08, 0x10, 0x14, 0x18, 0x1C, 0x20, 0x24)] == [
    0x12000000, 4, 1, 0x20000004, 1, 4, 8]
for offset, kept in ((0x10, 0xE0000000), (0x18, 0xFFF00000), (0x20, 0), (0x24, 0xFFFFFFF8)):
    config_write(0, offset, 0xFFFFFFFF)
    assert config_read(0, offset) & ~0xF == kept & ~0xF, hex(config_read(0, offset))
assert word(BAR0 + 0x1FD04100) == 0x4000  # decoding has not moved
config_write(0, 4, 0x12345)
assert config_read(0, 4) == 0x2345
config_write(0, 0x3C, 0x1FF)
assert config_read(0, 0x3C) == 0xFF
exit_()
""",
    )


@in_both_processes
def test_windows_reach_tiles(library: Path) -> None:
    check(
        library,
        """
import os
init()
million = os.urandom(1 << 20)
for x, y in ((1, 2), (17, 12), (0, 0)):
    poke(x, y, 0x40, million)
    assert peek(x, y, 0x40, len(million)) == million
poke(18, 13, 3 << 21, b"far")
assert peek(18, 13, 3 << 21, 3) == b"far"
base = aim(203, 18, 13, 0)  # 4 GiB
assert read(base + (3 << 21), 3) == b"far"
write(base + 0xFFFFFFFC, b"last")
assert read(base + 0xFFFFFFFC, 4) == b"last"
assert peek(1, 2, 0x41, 3) == million[1:4]
# what is written to entries reads back
assert [word(CONFIG + 12 * 203 + 4 * i) for i in range(3)] == [0, 18 | 13 << 6, 0]
# multicast leaves columns 8 and 9 out
write(aim(1, 11, 4, 0x100, start=(6, 3)), b"many")
seen = [(x, y) for y in range(2, 12) for x in (*range(1, 8), *range(10, 17)) if peek(x, y, 0x100) == b"many"]
assert seen == [(x, y) for y in (3, 4) for x in (6, 7, 10, 11)], seen
# strict and posted ordering are allowed
assert peek(1, 2, 0x40, 4, ordering=1) == peek(1, 2, 0x40, 4, ordering=2) == million[:4]
exit_()
""",
    )


def test_both_nocs_name_the_same_tiles(library: Path) -> None:
    check(
        library,
        """
init()
poke(16, 11, 0x20, b"here")
assert peek(16, 11, 0x20, noc=1) == b"here"
poke(18, 14, 0x20, b"DRAM", noc=1)
assert peek(18, 14, 0x20) == b"DRAM"
# rows 0 and 1 are not translated: x is that of the NoC itself
poke(0, 0, 0x20, b"west")
assert peek(16, 0, 0x20, noc=1) == b"west"
# a multicast of NoC 1 begins at the lower right corner
write(aim(1, 2, 3, 0x30, noc=1, start=(3, 4)), b"back")
assert peek(2, 3, 0x30) == peek(3, 4, 0x30) == b"back" and peek(4, 4, 0x30) == bytes(4)
# interfaces of the PCIe tile, in the BAR and from the NoC
assert word(BAR0 + 0x1FD04044) == 0x10611002 and word(BAR0 + 0x1FD14044) == 0x006112CE
assert peek(19, 24, 0xFFFFFFFF_FF000044) == (0x10611002).to_bytes(4, "little")
assert peek(19, 24, 0xFFFFFFFF_FF000044, noc=1) == (0x006112CE).to_bytes(4, "little")
assert peek(19, 24, 0xFFFFFFFF_FF000148) == (19 | 24 << 6).to_bytes(4, "little")
assert peek(0, 0, 0x100_FFB20044) == (0x10611000).to_bytes(4, "little")
exit_()
""",
    )


@in_both_processes
def test_time_passes_only_with_clocks(library: Path) -> None:
    check(
        library,
        f"""
init()
release_b([{NOP}] * 8 + [{LOOP}])
before = peek(1, 2, 0xFFB121F0)
assert peek(1, 2, 0xFFB121F0) == before
clock(5)
assert int.from_bytes(peek(1, 2, 0xFFB121F0), "little") == int.from_bytes(before, "little") + 5
exit_()
""",
    )


@in_both_processes
def test_a_new_chip_after_exit(library: Path) -> None:
    out = check(
        library,
        """
init(); poke(1, 2, 0, b"old"); clock(7); exit_()
init(); assert peek(1, 2, 0, 3) == bytes(3); exit_()
""",
    )
    assert re.findall(r"^\[(\d+)\] bhemu: [\d.]+ seconds, [\d.]+ kHz$", out, re.MULTILINE) == ["7", "0"]


@in_both_processes
def test_clients_may_end_the_simulator_after_python(library: Path) -> None:
    """As tt-umd does, from destructors."""
    out = check(
        library,
        """
init(); clock(3)
ctypes.CDLL(None).__cxa_atexit(ctypes.cast(lib.libttsim_exit, ctypes.c_void_p), None, None)
""",
    )
    assert re.fullmatch(r"\[3\] bhemu: .* kHz\n", out)


@in_both_processes
def test_dma_reads_host_memory(library: Path) -> None:
    check(
        library,
        """
memory = bytes(range(256)) * 40
asked = []
def from_host(address, pointer, size):
    asked.append((address, size))
    ctypes.memmove(pointer, memory[address - 0x1000:][:size], size)
callback = READ(from_host)
lib.libttsim_set_pci_dma_mem_callbacks(callback, None)
init()
aim(2, 17, 12, 0)
for offset, value in ((0x100, 1), (0x11C, 10000), (0x120, 0x1000), (0x124, 0), (0x128, (2 << 21) + 64), (0x12C, 0),
                      (0x188, 5)):
    put(BAR2 + offset, value)
    assert word(BAR2 + offset) == value
put(BAR2 + 0x104, 1)
assert word(BAR2 + 0x11C) == 0
assert asked == [(0x1000, 4096), (0x2000, 4096), (0x3000, 1808)]
assert peek(17, 12, 64, 10000) == memory[:10000]
exit_(); init()  # callbacks stay
assert peek(19, 24, 0x1010) == memory[16:20]
exit_()
""",
    )


@in_both_processes
def test_the_chip_writes_host_memory_through_translation(library: Path) -> None:
    check(
        library,
        """
written = []
callback = WRITE(lambda address, pointer, size: written.append((address, ctypes.string_at(pointer, size))))
lib.libttsim_set_pci_dma_mem_callbacks(None, callback)
init()
region = BAR2 + 0x1000 + 5 * 0x200
for offset, value in ((4, 0), (0, 0x2000), (8, 0x10000), (0xC, 1), (0x10, 0x1FFFF), (0x20, 1), (0x14, 0x700000),
                      (0x18, 3), (4, 0x80000000)):
    put(region + offset, value)
    assert word(region + offset) == value
poke(19, 24, 1 << 60 | 0x1_0001_0020, b"abc")
poke(19, 24, 1 << 60 | 0x40, b"de")
poke(19, 24, 0x1_0001_0020, b"f")
assert written == [(0x3_0070_0020, b"abc"), (0x40, b"de"), (0x1_0001_0020, b"f")], written
poke(19, 24, 62 << 58 | 0x78, b"1234")
assert peek(19, 24, 62 << 58 | 0x78) == b"1234"
exit_()
""",
    )


def test_the_order_of_queues(library: Path) -> None:
    """Forty NOPs behind a wait: the official simulator drops them, hardware has no room for them (E43)."""
    pushes = [tensix("STALLWAIT 0x1ff, 0x80"), *[tensix("NOP")] * 40]
    program = [(word << 2 | word >> 30) & 0xFFFFFFFF for word in pushes] + [ONE_TO_X1, X1_TO_400, LOOP]
    script = f"""
init()
release_b({program})
clock(100)
print(peek(1, 2, 0x400)[0])
exit_()
"""
    found = {order: check(library, script, BHEMU_ORDER=order).split()[0] for order in ("", "simulator", "hardware")}
    assert found == {"": "1", "simulator": "1", "hardware": "0"}
    wrong = run_client(library, "init()", BHEMU_ORDER="silicon")
    assert wrong.status == 1
    assert wrong.out.startswith("[0] ERROR: ConfigurationError: libttsim_init: BHEMU_ORDER is 'silicon'\n")


@pytest.mark.parametrize(("words", "reached"), [(52, 1), (53, 0)])
def test_the_room_of_the_simulators_queue(library: Path, words: int, reached: int) -> None:
    """A push waits while 53 words are queued, of which the first one waits for SrcA (E43)."""
    pushes = [tensix("STALLWAIT 0x1ff, 0x80"), *[tensix("SETADCXX 1, 15, 3")] * words]
    program = [(word << 2 | word >> 30) & 0xFFFFFFFF for word in pushes] + [ONE_TO_X1, X1_TO_400, LOOP]
    out = check(library, f"init(); release_b({program}); clock(200); print(peek(1, 2, 0x400)[0]); exit_()")
    assert out.split()[0] == str(reached)


@pytest.mark.parametrize("process", ["", "own"])
def test_semihosting(process: str, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """write(1, 0x100, 3), then exit(7): in a process under Python, asked for or not."""
    monkeypatch.setenv("BHEMU_PROCESS", process)
    program = [0x00100513, 0x10000593, 0x00300613, 0x04000893, 0x00000073, 0x00700513, 0x05D00893, 0x00000073]
    script = f"init(); poke(1, 2, 0x100, b'Hi!'); release_b({program}); clock(100); print('still there')"
    ended = run_client(library, script, TTSIM_SEMIHOSTING="1")
    assert ended.status == 7, ended.errors
    assert ended.out.startswith("Hi![")
    assert "still there" not in ended.out
    assert run_client(library, script).out.startswith("still there\n"), "without the variable core B halts"
    wrong = run_client(library, "init()", TTSIM_SEMIHOSTING="yes")
    assert wrong.status == 1
    assert wrong.out.startswith("[0] ERROR: ConfigurationError: libttsim_init: TTSIM_SEMIHOSTING is 'yes'\n")
    here = run_client(library, "init()", TTSIM_SEMIHOSTING="1", BHEMU_PROCESS="client")
    assert here.status == 1
    assert "TTSIM_SEMIHOSTING needs a process under Python" in here.out


FAULT = f"init(); release_b([{NOP}, 0xFFFFFFFF], 16, 11); clock(9)"


@in_both_processes
def test_a_fault_says_where_and_leaves_the_state(library: Path, tmp_path: Path) -> None:
    ended = run_client(library, FAULT, BHEMU_DUMP=str(tmp_path / "state.npz"))
    assert ended.status == 1
    first, *others = ended.out.splitlines()
    assert re.match(r"\[\d+\] ERROR: UndefinedBehavior: libttsim_clock: Tensix tile 16-11: core B at 0x00004: ", first)
    assert "  at: tile 16-11, core B, pc 0x4, instruction .word 0xffffffff" in others
    assert any(line.startswith("  remedy: ") for line in others)
    assert others[-1] == f"  state of the tile: {tmp_path / 'state.npz'}"
    with np.load(tmp_path / "state.npz") as state:
        assert state["core_pc"][0] == 4
        assert state["l1"][4:8].tolist() == [255] * 4


def test_a_dump_that_cannot_be_written(library: Path, tmp_path: Path) -> None:
    ended = run_client(library, FAULT, BHEMU_DUMP=str(tmp_path / "no" / "state.npz"))
    assert ended.status == 1
    assert "UndefinedBehavior: libttsim_clock" in ended.out
    assert "BHEMU_DUMP: cannot write" in ended.out
    nothing = run_client(library, "init(); read(5, 4)", BHEMU_DUMP=str(tmp_path / "state.npz"))
    assert "BHEMU_DUMP: no tile is at fault" in nothing.out
    assert not (tmp_path / "state.npz").exists()


ENTRY = "aim(0, 1, 2, 0, extra=1 << 43 + {bit}); read(BAR0, 4)"
REFUSED = {
    # call: category, function, part of the text
    "init()": ("ConfigurationError", "libttsim_init", "running already"),
    "lib.libttsim_set_pci_dma_mem_callbacks(None, None)": (
        "ConfigurationError",
        "libttsim_set_pci_dma_mem_callbacks",
        "before libttsim_init",
    ),
    "config_read(0x100, 0)": ("ConfigurationError", "libttsim_pci_config_rd32", "bus 1"),
    "config_read(1, 0)": ("ConfigurationError", "libttsim_pci_config_rd32", "function 1"),
    "config_read(0, 2)": ("ConfigurationError", "libttsim_pci_config_rd32", "offset 0x2"),
    "config_read(0, 0x40)": ("ConfigurationError", "libttsim_pci_config_rd32", "offset 0x40"),
    "config_write(8, 4, 0)": ("ConfigurationError", "libttsim_pci_config_wr32", "device 1 does not exist"),
    "config_write(0, 0, 0)": ("ConfigurationError", "libttsim_pci_config_wr32", "read-only"),
    "read(BAR0, 0)": ("UndefinedBehavior", "libttsim_pci_mem_rd_bytes", "0 bytes"),
    "write(BAR0, b'')": ("UndefinedBehavior", "libttsim_pci_mem_wr_bytes", "0 bytes"),
    "read(0x5000, 4)": ("UndefinedBehavior", "libttsim_pci_mem_rd_bytes", "0x5000"),
    "read(BAR0 + 0x19400000, 4)": ("ConfigurationError", "libttsim_pci_mem_rd_bytes", "nothing is built"),
    "put(BAR0 + 0x1FC009D8, 0)": ("ConfigurationError", "libttsim_pci_mem_wr_bytes", "nothing is built"),
    "put(BAR0 + 0x1FD04100, 0)": ("ConfigurationError", "libttsim_pci_mem_wr_bytes", "nothing is built"),
    "read(CONFIG, 8)": ("UndefinedBehavior", "libttsim_pci_mem_rd_bytes", "registers of 4 bytes"),
    "put(CONFIG + 2, 0)": ("UndefinedBehavior", "libttsim_pci_mem_wr_bytes", "registers of 4 bytes"),
    "read(aim(0, 1, 2, 0) + (1 << 21) - 2, 4)": (
        "NonContractualBehavior",
        "libttsim_pci_mem_rd_bytes",
        "past the end of window 0",
    ),
    "peek(1, 2, 0, ordering=3)": ("UnimplementedFunctionality", "libttsim_pci_mem_rd_bytes", "window 0"),
    ENTRY.format(bit=29): ("UnimplementedFunctionality", "libttsim_pci_mem_rd_bytes", "linked"),
    ENTRY.format(bit=30): ("UnimplementedFunctionality", "libttsim_pci_mem_rd_bytes", "static"),
    ENTRY.format(bit=12): ("UndefinedBehavior", "libttsim_pci_mem_rd_bytes", "start corner"),
    "read(aim(0, 3, 4, 0, start=(2, 3)), 4)": ("UndefinedBehavior", "libttsim_pci_mem_rd_bytes", "multicast window"),
    "write(aim(0, 2, 3, 0, start=(3, 4)), b'1')": ("UndefinedBehavior", "libttsim_pci_mem_wr_bytes", "from 3-4 to 2-3"),
    "write(aim(0, 9, 1, 0, start=(0, 0)), b'1')": ("UndefinedBehavior", "libttsim_pci_mem_wr_bytes", "not Tensix"),
    "write(aim(202, 2, 3, 0, start=(1, 2)), b'1')": (
        "UnimplementedFunctionality",
        "libttsim_pci_mem_wr_bytes",
        "4 GiB",
    ),
    "peek(19, 5, 0)": ("UndefinedBehavior", "libttsim_pci_mem_rd_bytes", "19-5 name no tile"),
    "peek(8, 26, 0)": ("UnimplementedFunctionality", "libttsim_pci_mem_rd_bytes", "L2CPU tile 8-3"),
    "peek(1, 2, 0x180000)": ("UndefinedBehavior", "libttsim_pci_mem_rd_bytes", "L1 ends"),
    "peek(1, 2, 0xFFB121B0, 2)": ("UndefinedBehavior", "libttsim_pci_mem_rd_bytes", "registers of 4 bytes"),
    "peek(1, 2, 0xFFB20204 + 0x2000)": ("UndefinedBehavior", "libttsim_pci_mem_rd_bytes", "Tensix tile 1-2: "),
    "peek(17, 12, 1 << 33)": ("UndefinedBehavior", "libttsim_pci_mem_rd_bytes", "4 GiB"),
    "peek(19, 24, 0x1000)": ("ConfigurationError", "libttsim_pci_mem_rd_bytes", "callback"),
    "poke(19, 24, 0x1000, b'1')": ("ConfigurationError", "libttsim_pci_mem_wr_bytes", "callback"),
    "peek(19, 24, 9 << 58)": ("UndefinedBehavior", "libttsim_pci_mem_rd_bytes", "window 9"),
    "peek(19, 24, 62 << 58)": ("UnimplementedFunctionality", "libttsim_pci_mem_rd_bytes", "controller"),
    "put(BAR2 + 0x108, 0)": ("ConfigurationError", "libttsim_pci_mem_wr_bytes", "no DMA register"),
    "put(BAR2 + 0x104, 1)": ("UndefinedBehavior", "libttsim_pci_mem_wr_bytes", "channel is off"),
    "put(BAR2 + 0x100, 1); put(BAR2 + 0x104, 1)": ("UndefinedBehavior", "libttsim_pci_mem_wr_bytes", "DMA of 0 bytes"),
    "put(BAR2 + 0x1100, 0)": ("UnimplementedFunctionality", "libttsim_pci_mem_wr_bytes", "inbound region 0"),
    "put(BAR2 + 0x1000, 1)": ("UnimplementedFunctionality", "libttsim_pci_mem_wr_bytes", "0x1"),
    "put(BAR2 + 0x1024, 1)": ("ConfigurationError", "libttsim_pci_mem_wr_bytes", "no register 0x24"),
    "put(BAR2 + 0x1008, 1); put(BAR2 + 0x1004, 1 << 31)": (
        "UndefinedBehavior",
        "libttsim_pci_mem_wr_bytes",
        "outbound region 0 reaches",
    ),
    "lib.libttsim_tile_rd_bytes(1, 2, 0, None, 4)": (
        "UnsupportedFunctionality",
        "libttsim_tile_rd_bytes",
        "older interface",
    ),
    "lib.libttsim_tile_wr_bytes(1, 2, 0, None, 4)": (
        "UnsupportedFunctionality",
        "libttsim_tile_wr_bytes",
        "older interface",
    ),
}
BEFORE_INIT = {
    "exit_()": "libttsim_exit",
    "config_read(0, 0)": "libttsim_pci_config_rd32",
    "config_write(0, 4, 0)": "libttsim_pci_config_wr32",
    "read(BAR0, 4)": "libttsim_pci_mem_rd_bytes",
    "write(BAR0, b'1')": "libttsim_pci_mem_wr_bytes",
    "clock(1)": "libttsim_clock",
    "lib.libttsim_tile_rd_bytes(1, 2, 0, None, 4)": "libttsim_tile_rd_bytes",
    "lib.libttsim_tile_wr_bytes(1, 2, 0, None, 4)": "libttsim_tile_wr_bytes",
}


NO_PYTHON = "/no/python"


@pytest.fixture(scope="module")
def refusals(library: Path) -> dict[str, tuple[int, str]]:
    """As the library words them by itself."""
    return run_forked(library, "init(); clock(12)", {call: call for call in REFUSED}, BHEMU_PYTHON=NO_PYTHON)


@pytest.mark.parametrize("call", REFUSED)
def test_refusals(call: str, refusals: dict[str, tuple[int, str]]) -> None:
    category, function, text = REFUSED[call]
    status, out = refusals[call]
    assert status == 1
    first = out.splitlines()[0]
    assert re.match(rf"\[\d+\] ERROR: {category}: {function}: ", first), out
    assert text in first


def test_python_and_the_library_say_the_same(library: Path) -> None:
    for call in ("peek(8, 26, 0)", "config_read(0x100, 0)", "peek(1, 2, 0xFFB20204 + 0x2000)", "peek(17, 12, 1 << 33)"):
        outs = [run_client(library, f"init(); {call}", BHEMU_PYTHON=python).out for python in ("", NO_PYTHON)]
        first, second = (out.splitlines() for out in outs)
        assert first[0] == second[0], call
        assert [line for line in first if "remedy" in line] == [line for line in second if "remedy" in line]
        assert second[-1].startswith("  more: set BHEMU_PYTHON to a Python")


def test_a_refused_instruction_where_there_is_no_python(library: Path) -> None:
    ended = run_client(library, FAULT, BHEMU_PYTHON=NO_PYTHON)
    assert ended.status == 1
    first, remedy, *_ = ended.out.splitlines()
    assert re.match(r"\[\d+\] ERROR: UndefinedBehavior: libttsim_clock: Tensix tile 16-11: core B at 0x00004: ", first)
    assert remedy.startswith("  remedy: ")


def test_a_python_with_another_version_of_bhemu_explains_nothing(library: Path, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexit {CANNOT}\n")
    python.chmod(0o700)
    ended = run_client(library, "init(); read(5, 4)", BHEMU_PYTHON=str(python))
    assert ended.status == 1
    assert "ERROR: UndefinedBehavior: libttsim_pci_mem_rd_bytes" in ended.out
    assert "  more: set BHEMU_PYTHON" in ended.out


# addi t0, t0, 1; add t2, t2, t0; sw t2, 0x100(zero); lw t3, 0x100(zero); xor t4, t4, t3; j -20
HOT = [0x00128293, 0x005383B3, 0x10702023, 0x10002E03, 0x01CECEB3, 0xFEDFF06F]


@pytest.mark.parametrize("pace", ["exact", "adaptive"])
def test_translated_and_interpreted_cores_do_the_same(library: Path, pace: str) -> None:
    """Also where the host has changed the code (the second instruction becomes sub), and on two threads."""
    script = f"""
init()
for at in range(3):
    release_b({HOT}, 1 + at, 2)
for _ in range(40):
    clock(9973)
    print([peek(1 + at, 2, 0x100).hex() for at in range(3)])
poke(2, 2, 4, (0x405383B3).to_bytes(4, 'little'))
for _ in range(10):
    clock(3001)
    print([peek(1 + at, 2, 0x100).hex() for at in range(3)])
exit_()
"""
    cases = (("0", "1"), ("1", "1"), ("1", "2"), ("", "1"), ("", "2"))
    outs = [
        run_client(library, script, BHEMU_TRANSLATE=translate, BHEMU_THREADS=threads, BHEMU_PACE=pace)
        for translate, threads in cases
    ]
    assert {ended.status for ended in outs} == {0}
    values = [[line for line in ended.out.splitlines() if line.startswith("['")] for ended in outs]
    assert len(set(values[0])) == 50
    assert all(each == values[0] for each in values)


@pytest.mark.parametrize(
    ("pace", "translate", "clocks", "is_translated"),
    [
        *(("exact", "0", 400_000, False), ("exact", "1", 400_000, True), ("exact", "", 400_000, True)),
        *(("exact", "1", 24_000, True), ("exact", "", 24_000, False)),
        *(("adaptive", "0", 24_000, False), ("adaptive", "1", 8_000, True), ("adaptive", "", 24_000, True)),
        ("adaptive", "", 2_000, False),
    ],
)
@pytest.mark.parametrize("threads", ["1", "2"])
def test_what_is_translated(
    library: Path, pace: str, translate: str, clocks: int, is_translated: bool, threads: str
) -> None:
    """Memory that is executable and belongs to no file holds it. A short loop is translated when that is asked for."""
    script = f"""
init()
for at in range(3):
    release_b({HOT}, 1 + at, 2)
for _ in range({clocks} // 2000):
    clock(2000)
maps = [line.split() for line in open('/proc/self/maps')]
print('translated', any(place[1] == 'r-xp' and len(place) == 5 for place in maps))
"""
    settings = {"BHEMU_TRANSLATE": translate, "BHEMU_THREADS": threads, "BHEMU_PACE": pace}
    ended = run_client(library, script, BHEMU_PROCESS="client", **settings)
    assert f"translated {is_translated}" in ended.out


def test_unknown_variables_are_refused(library: Path) -> None:
    ended = run_client(library, "init()", BHEMU_TREADS="2")
    assert ended.status == 1
    assert "ConfigurationError: libttsim_init: BHEMU_TREADS is not a variable of bhemu" in ended.out
    assert "BHEMU_THREADS" in ended.out


def test_a_value_of_the_translator_s_variable_that_means_nothing_is_refused(library: Path) -> None:
    ended = run_client(library, "init()", BHEMU_TRANSLATE="no")
    assert ended.status == 1
    assert "ConfigurationError: libttsim_init: BHEMU_TRANSLATE is 'no'" in ended.out


def test_more_clocks_pass_while_a_client_only_polls(library: Path) -> None:
    """One a call at first, then 67, twice as many each time, up to 1024; 67 again after a write or a change."""
    polled = """
init()
at = aim(1, 1, 2, 0x8000)
for _ in range({calls}):
    {reads}; clock(1)
{then}
exit_()
"""

    def time(calls: int, then: str = "", reads: str = "word(at)", **pace: str) -> int:
        out = check(library, polled.format(calls=calls, then=then, reads=reads), **pace)
        return int(re.findall(r"^\[(\d+)\] bhemu", out, re.MULTILINE)[0])

    assert time(100, BHEMU_PACE="exact") == 100
    assert time(16) == 16
    assert time(20) == time(20, BHEMU_PACE="adaptive") == 16 + 251 * (1 + 2 + 4) + 1024
    assert time(24) == time(20) + 4 * 1024
    assert time(20, "put(at, 1); clock(1)") == time(20) + 251
    assert time(5, "put(at, 1); clock(1)") == 5 + 1, "the client has not polled often enough"
    assert time(20, "clock(5)") == time(20) + 5
    assert time(20, reads="read(at, 12)") == time(20)
    assert time(100, reads="read(at, 65)") == 100, "so many bytes are not polled"
    assert time(100, reads="pass") == 100, "the chip has not touched the client's memory"


def test_a_client_that_aims_a_window_for_each_read_polls_too(library: Path) -> None:
    """Two tiles in turns, through one window: what one of them holds is not compared with what the other does."""
    out = check(
        library,
        """
init()
poke(1, 2, 0x8000, b"abcd")
for _ in range(10):
    for y in (2, 3):
        peek(1, y, 0x8000); clock(1)
exit_()
""",
    )
    # The second place, too, is one that was not read before.
    assert out.startswith(f"[{16 + 251 * (1 + 1 + 2 + 4)}] bhemu")


def test_refusals_before_init(library: Path) -> None:
    for call, (status, out) in run_forked(library, "", {call: call for call in BEFORE_INIT}).items():
        assert status == 1
        assert out.startswith(f"[0] ERROR: ConfigurationError: {BEFORE_INIT[call]}: the simulator is not running"), out


def test_errors_of_bhemu_itself_are_assertion_failures() -> None:
    text = refusal_text("libttsim_clock", AttributeError("no such thing"), None)
    assert text.startswith("[0] ERROR: AssertionFailure: libttsim_clock: AttributeError: no such thing")
