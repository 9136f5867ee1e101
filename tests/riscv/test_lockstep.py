"""RV32IMA in lock step with Unicorn (QEMU's CPU): random programs, all registers after each instruction, memory at the
end."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from bhemu import Tile
from bhemu.isa.riscv import find
from tests.riscv.random_programs import DATA, DATA_BYTES, LAYOUTS, Generator
from tests.riscv.rv_asm import assemble
from tests.riscv.rv_machine import machine, put

unicorn = pytest.importorskip("unicorn", reason="the package unicorn is not installed")
from unicorn import riscv_const  # noqa: E402  (needs the line above)

pytestmark = pytest.mark.plain

MEMORY = 0x40000
PROGRAMS = 16
STEPS = 2000


class Reference:
    """Unicorn's core with the same memory."""

    def __init__(self, program: bytes, data: bytes) -> None:
        self.core: Any = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
        self.core.mem_map(0, MEMORY)
        self.core.mem_write(0, program)
        self.core.mem_write(DATA, data)
        self.pc = 0
        self.registers = [riscv_const.UC_RISCV_REG_X0 + i for i in range(32)]

    def step(self) -> None:
        self.core.emu_start(self.pc, MEMORY, count=1)
        self.pc = self.core.reg_read(riscv_const.UC_RISCV_REG_PC)

    def x(self) -> list[int]:
        return list(self.core.reg_read_batch(self.registers))


def _run(seed: int, executed: Counter[str]) -> None:
    generator = Generator(seed)
    program = assemble(generator.program())
    data = generator.random.bytes(DATA_BYTES)
    tile = Tile()
    put(tile, DATA, data)
    machine(program, tile=tile)
    view = tile.cores["B"]
    reference = Reference(program, data)
    end = len(program) - 4
    for step in range(STEPS):
        if reference.pc == end:
            break
        pc = reference.pc
        word = int(tile.record.l1_u32[pc >> 2])
        row = find(word)
        assert row is not None
        executed[row.name] += 1
        reference.step()
        tile.clock(1)
        ours, theirs = [int(x) for x in view.x], [x & 0xFFFFFFFF for x in reference.x()]
        assert (view.pc, ours) == (reference.pc, theirs), f"seed {seed}, step {step}: {row.name} at {pc:#x}"
    else:
        pytest.fail("the program did not end")
    assert bytes(reference.core.mem_read(DATA, DATA_BYTES)) == tile.l1[DATA : DATA + DATA_BYTES].tobytes()
    assert view.retired == sum(executed.values())


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_registers_and_memory_follow_unicorn(seed: int) -> None:
    _run(seed, Counter())


def test_the_programs_execute_every_opcode() -> None:
    total: Counter[str] = Counter()
    for seed in range(PROGRAMS, PROGRAMS + 8):
        executed: Counter[str] = Counter()
        _run(seed, executed)
        total += executed
    few = {name: total[name] for name in LAYOUTS if total[name] < 10}
    assert not few, few
    assert sum(total.values()) > 2000
