"""A client of bhemu's own library is recorded, and replayed with equal results."""

from __future__ import annotations

from pathlib import Path

import pytest

from bhemu.bench.client import Bench
from bhemu.capi import build_recorder
from bhemu.compare.calls import READ
from bhemu.compare.trace import read_trace, write_trace
from bhemu.machine.compiler import JIT
from tests.capi.library_client import run_client
from tests.riscv.rv_asm import assemble

KERNEL = """
    lui a0, 0x2
    li a1, 500
loop:
    addi a2, a2, 3
    addi a1, a1, -1
    bnez a1, loop
    sw a2, 4(a0)
    li a3, 1
    sw a3, 0(a0)
end:
    j end
"""
CLIENT = """
memory = bytearray(range(256)) * 20
def from_host(address, pointer, size):
    ctypes.memmove(pointer, bytes(memory[address - 0x1000:][:size]), size)
callback = READ(from_host)
written = []
other = WRITE(lambda address, pointer, size: written.append(ctypes.string_at(pointer, size)))
lib.libttsim_set_pci_dma_mem_callbacks(callback, other)
init()
assert config_read(0, 0) == 0xB1401E52
aim(2, 17, 12, 0)
def dma():
    for offset, value in ((0x100, 1), (0x11C, 5000), (0x120, 0x1000), (0x124, 0), (0x128, 2 << 21), (0x12C, 0),
                          (0x188, 5)):
        put(BAR2 + offset, value)
    put(BAR2 + 0x104, 1)
dma()
memory[100:104] = b"next"
dma()
assert peek(17, 12, 100) == b"next"
poke(19, 24, 1 << 60 | 0x40, b"from the chip")
release_b(struct.unpack("<%dI" % (len(KERNEL) // 4), KERNEL))
polls = 0
while word(aim(3, 1, 2, 0x2000)) == 0:
    clock(1)
    polls += 1
assert struct.unpack("<I", peek(1, 2, 0x2004))[0] == 1500
assert written == [b"from the chip"], written
exit_()
print(polls)
"""


@pytest.mark.skipif(not JIT, reason="the library's process compiles")
@pytest.mark.parametrize("exact", [True, False])
def test_a_recorded_client_is_replayed_with_equal_results(own_library: Path, tmp_path: Path, exact: bool) -> None:
    recorder = build_recorder(tmp_path / "recorder", own_library)
    trace = tmp_path / "client.jsonl"
    ended = run_client(recorder, f"KERNEL = {assemble(KERNEL)!r}\n{CLIENT}", BHEMU_TRACE=str(trace))
    assert ended.status == 0, ended.out + ended.errors
    polls = int(ended.out.splitlines()[-1])
    assert polls > 500
    packed = tmp_path / "packed.jsonl.xz"
    write_trace(packed, read_trace(trace))
    assert packed.stat().st_size < trace.stat().st_size / 50
    calls = read_trace(packed)
    assert calls == read_trace(trace)
    assert sum(call.name == READ for call in calls) > polls
    with Bench([own_library]) as bench:
        found = bench.measure("client", calls, rounds=1, exact=exact)
    (replay,) = found.replays[bench.libraries[0].name]
    assert (replay.refused, replay.differences, replay.note) == ("", 0, "")
    if exact:
        assert replay.clocks == polls
    else:  # it waits for what the client waited for, and the library's pace adapts
        assert 0 < replay.clocks <= polls
