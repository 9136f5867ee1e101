"""Memory-mapped registers: overlay streams (tile K50 to K53) and the map around them (tile T24, T26)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.api.tile import Tile
from bhemu.errors import UndefinedBehavior, Unimplemented
from bhemu.isa.instructions import encode
from bhemu.isa.names import Block
from bhemu.isa.registers import WRITABLE_MASK
from bhemu.machine.agents import NC, NOC, TENSIX, B
from tests.tensix.mmio_agent import Registers

pytestmark = pytest.mark.plain

EVERYONE = (B, NC, NOC, TENSIX)
STREAM = 9
MESSAGES_ADD, MESSAGES, PHASE = 1, 259, 29


def stream(number: int, register: int) -> int:
    return 0xFFB40000 + 0x1000 * number + 4 * register


@pytest.fixture
def registers() -> Registers:
    return Registers()


@pytest.mark.rule("tile K50")
@pytest.mark.parametrize("agent", EVERYONE)
@pytest.mark.parametrize(
    ("register", "width"),
    [
        (4, 24),
        (8, 17),
        (10, 17),
        (11, 17),
        (29, 20),
        (31, 24),
        (3, 24),
        (16, 24),
        *((r, 17) for r in (17, 18, 19, 20, 22, 23)),
        (33, 14),
        *((36 + i, 24) for i in range(6)),
    ],
)
def test_plain_registers_keep_their_width(registers: Registers, agent: int, register: int, width: int) -> None:
    registers.store(agent, stream(STREAM, register), 0xA5A5_5A5A)
    assert registers.load(agent, stream(STREAM, register)) == 0xA5A5_5A5A & (1 << width) - 1
    assert registers.load(agent, stream(STREAM + 1, register)) == 0
    assert registers.load(agent, stream(STREAM - 1, register)) == 0


@pytest.mark.rule("tile K50")
@pytest.mark.parametrize("number", range(64))
def test_scratch_words_exist_where_a_stream_reaches_dram(registers: Registers, number: int) -> None:
    registers.store(NOC, stream(number, 41), 77)
    assert registers.load(NOC, stream(number, 41)) == (77 if number in (0, 1, 2, 3, 8, 9, 10, 11) else 0)


@pytest.mark.rule("tile K50")
def test_the_start_of_the_remote_buffer_resets_its_write_pointer(registers: Registers) -> None:
    registers.store(B, stream(63, 11), 5)
    registers.store(B, stream(63, 8), 0)
    assert registers.load(B, stream(63, 11)) == 0


@pytest.mark.rule("tile K50")
def test_the_size_of_the_remote_buffer_is_its_space_and_updates_add_to_it(registers: Registers) -> None:
    size, update, space = (stream(48, r) for r in (10, 270, 297))
    registers.store(B, size, 0x1FFFE)
    assert registers.load(B, space) == 0x1FFFE
    registers.store(NOC, update, 1 << 6)
    assert registers.load(B, space) == 0x1FFFF
    registers.store(NOC, update, 3 << 6)
    assert registers.load(B, space) == 2
    registers.store(B, update, (-2 << 6) & 0xFFFFFFFF)
    assert registers.load(B, space) == 0
    assert registers.load(B, size) == 0x1FFFE


@pytest.mark.rule("tile K52")
def test_the_completion_counter_is_register_270_of_stream_48(registers: Registers) -> None:
    registers.store(NOC, 0xFFB70438, 64)
    assert registers.load(NOC, stream(48, 297)) == 1


def test_messages_that_a_store_adds_are_those_that_streamwait_counts_and_unpacr_nop_pops() -> None:
    tile = Tile()
    tile.record.thread_config[0, 59] = STREAM
    tile.record.gpr[0, 3] = 2 | 0x40 << 12  # two messages of together 64 units
    wait = encode("STREAMWAIT", stall_res=Block.SYNC, target_value=2, target_sel=1, wait_stream_sel=0)
    tile.coprocessor.push(0, wait)
    tile.coprocessor.push(0, encode("SEMPOST", sem_sel=1))
    assert not tile.coprocessor.drain(0)
    tile.execute(1, encode("STREAMWAIT", stall_res=Block.SYNC, target_value=0, target_sel=1))
    tile.record.gpr[1, 3] = 2 | 0x40 << 12
    tile.execute(1, encode("STOREREG", 3, (stream(STREAM, MESSAGES_ADD) - 0xFFB00000) // 4))
    assert tile.coprocessor.drain(0)
    tile.execute(0, encode("UNPACR_NOP", Unpack_Pop=3, Stream_Id=STREAM, Msg_Clr_Cnt=1))
    tile.execute(1, encode("LOADREG", 4, (stream(STREAM, MESSAGES) - 0xFFB00000) // 4))
    assert tile.record.gpr[1, 4] == 1


def test_streamwait_sees_a_phase_that_a_store_sets() -> None:
    tile = Tile()
    tile.record.thread_config[2, 62] = 5  # selector 3
    tile.coprocessor.push(2, encode("STREAMWAIT", stall_res=Block.SYNC, target_value=7, wait_stream_sel=3))
    tile.coprocessor.push(2, encode("SEMPOST", sem_sel=1))
    for phase, over in ((6, False), (7, True)):
        tile.record.gpr[0, 0] = phase
        tile.execute(0, encode("STOREREG", 0, (stream(5, PHASE) - 0xFFB00000) // 4))
        assert tile.coprocessor.drain(2) is over


@pytest.mark.rule("tile K53")
def test_what_a_stream_does_not_have_is_refused_and_nothing_changes(registers: Registers) -> None:
    registers.store(NOC, stream(7, MESSAGES_ADD), 0xFFF)
    for _ in range(31):
        registers.store(NOC, stream(7, MESSAGES_ADD), 0xFFF)
    before = registers.state()
    for register in (0, 5, 7, 9, 12, 21, 24, 28, 30, 32, 35, 208, 256, 264, 265, 267, 271, 298, 1023):
        with pytest.raises(Unimplemented, match=f"register {register} of overlay stream 7 is not built"):
            registers.store(NOC, stream(7, register), 1)
        with pytest.raises(Unimplemented, match=f"register {register} of overlay stream 7"):
            registers.load(NOC, stream(7, register))
    for register in (259, 297):
        with pytest.raises(UndefinedBehavior, match=f"register {register} of overlay stream 7 can only be read"):
            registers.store(NOC, stream(7, register), 1)
    for register in (1, 270):
        with pytest.raises(UndefinedBehavior, match=f"register {register} .* can only be written"):
            registers.load(NOC, stream(7, register))
    with pytest.raises(UndefinedBehavior, match="holds 131040 messages and gets 32 more"):
        registers.store(NOC, stream(7, MESSAGES_ADD), 32)
    with pytest.raises(Unimplemented, match="0x20000001 for overlay stream 7"):
        registers.store(NOC, stream(7, MESSAGES_ADD), 1 << 29 | 1)
    with pytest.raises(Unimplemented, match="receiver 3 of overlay stream 7"):
        registers.store(NOC, stream(7, 270), 1 << 6 | 3)
    assert registers.state() == before
    registers.store(NOC, stream(7, MESSAGES_ADD), 31)
    assert registers.load(NOC, stream(7, MESSAGES)) == 0x1FFFF


@pytest.mark.rule("I.11")
@pytest.mark.parametrize("address", [0x1000, 0xFFB00000, 0xFFB10FFC])
def test_the_coprocessor_reaches_registers_alone(address: int) -> None:
    """LOADREG cannot name L1; its window begins with what is private to a core."""
    tile = Tile()
    tile.record.gpr[0, 1] = address
    word = encode("STOREIND", form="MMIO", OffsetIndex=4, AutoIncSpec=0, DataRegIndex=2, AddrRegIndex=1)
    with pytest.raises(UndefinedBehavior, match=f"{0xFFB00000 | address:#x} is below 0xffb11000"):
        tile.execute(0, word)


@pytest.mark.rule("tile T24")
@pytest.mark.parametrize(
    "address", [0xFFB1314C, 0xFFB13FFC, 0xFFB1E000, 0xFFB1FFFC, 0xFFB80000, 0xFFBD8000, 0xFFBFFFFC, 0xFFE80020]
)
@pytest.mark.parametrize("agent", [NOC, TENSIX])
def test_addresses_without_a_register_are_refused_by_name(registers: Registers, agent: int, address: int) -> None:
    who = "the host" if agent == NOC else "the coprocessor"
    with pytest.raises(UndefinedBehavior, match=f"{who} accesses {address:#x}, which is unmapped"):
        registers.load(agent, address)
    with pytest.raises(UndefinedBehavior, match=f"{who} accesses {address:#x}, which is unmapped"):
        registers.store(agent, address, 1)


@pytest.mark.rule("003.4.5")
@pytest.mark.parametrize("selector", range(4))
@pytest.mark.parametrize("bank", [0, 1])
def test_streamwrcfg_copies_a_register_of_the_selected_stream(selector: int, bank: int) -> None:
    tile = Tile()
    tile.record.thread_config[1, 0] = bank
    tile.record.thread_config[1, 59:63] = [3, 40, 0, 63]
    for number in (3, 40, 0, 63):
        tile.record.stream_messages[number] = 1000 + number
        tile.record.stream_phase[number] = 2000 + number
    chosen = (3, 40, 0, 63)[selector]
    tile.execute(1, encode("STREAMWRCFG", stream_id_sel=selector, StreamRegAddr=MESSAGES, CfgReg=12))
    tile.execute(1, encode("STREAMWRCFG", stream_id_sel=selector, StreamRegAddr=PHASE, CfgReg=209))
    assert WRITABLE_MASK[12] == WRITABLE_MASK[209] == 0xFFFFFFFF
    words = tile.record.config
    assert {(int(b), int(w)): int(words[b, w]) for b, w in zip(*np.nonzero(words), strict=True)} == {
        (bank, 12): 1000 + chosen,
        (0, 209): 2000 + chosen,  # a word that both banks share
    }


def test_the_coprocessor_reaches_the_devices_after_a_reset_of_the_tile() -> None:
    tile = Tile()
    tile.reset()
    tile.execute(0, encode("LOADREG", 4, (0xFFB20044 - 0xFFB00000) // 4))
    assert tile.record.gpr[0, 4] == 0x10611081
