"""Programs as calls: Python programs as code of the T cores, ELF files, and what a tile did before a clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bhemu import Program, Semaphore
from bhemu.api.blocked import is_idle_for_ever
from bhemu.api.tile import Snapshot, Tile
from bhemu.compare.calls import CLOCK, EXIT, INIT, READ, WRITE, Call, Ended, clock, write
from bhemu.compare.capture import capture
from bhemu.compare.chip_side import ChipSide
from bhemu.compare.elf import load, session
from bhemu.compare.history import history
from bhemu.compare.library import LibrarySide
from bhemu.compare.lockstep import play
from bhemu.compare.places import aim
from bhemu.compare.session import CompareError, Session, Span
from bhemu.compare.stub import Stub, words_of_one_thread
from bhemu.errors import BhemuError
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.machine.agents import T0, B
from bhemu.machine.compiler import JIT
from bhemu.programs.load import load_program
from bhemu.programs.run import run_program
from bhemu.recording.core_recorder import CoreRecorder
from tests.loader.elf_files import Load, Name, make_elf, with_symbols
from tests.riscv.rv_asm import assemble, assemble_with_labels

EXAMPLES = Path(__file__).parents[2] / "examples"
compiled_only = pytest.mark.skipif(not JIT, reason="whole programs take minutes as plain Python")


def run(made: Session) -> ChipSide:
    """Run a session on bhemu alone."""
    ours = ChipSide()
    for call in made.calls(ours):
        outcome = ours.call(call)
        assert not isinstance(outcome, Ended), outcome
    return ours


def l1_of(ours: ChipSide, tile: tuple[int, int] = (1, 2)) -> Any:
    return ours.chip.tiles[ours.chip.node(tile).index].l1


# --- Python programs --------------------------------------------------------------------------------------------------


@compiled_only
@pytest.mark.parametrize("name", ["add1", "datacopy", "eltwise", "matmul"])
def test_code_of_t_cores_computes_what_the_functions_do(name: str) -> None:
    program = load_program(EXAMPLES / f"{name}.py")
    made = capture(program, seed=3)
    ours = run(made)
    assert made.finished == "done"
    expected = run_program(load_program(EXAMPLES / f"{name}.py"), seed=3).tile
    for tensor in program.outputs:
        part = slice(tensor.address, tensor.address + tensor.bytes)
        assert expected.l1[part].any()
        assert l1_of(ours)[part].tobytes() == expected.l1[part].tobytes()


def three_threads(unpack: Callable[[Any], None]) -> Program:
    program = Program("test")
    program.unpack(unpack)
    program.math(lambda core: None)
    program.pack(lambda core: None)
    return program


@compiled_only
def test_stores_posts_and_waits_become_code() -> None:
    def unpack(core: Any) -> None:
        core.semaphore_post(Semaphore.UNPACK_SYNC)
        core.semaphore_post(Semaphore.UNPACK_SYNC)
        core.semaphore_get(Semaphore.UNPACK_SYNC)
        core.wait_until(lambda: core.tile.semaphores[Semaphore.UNPACK_SYNC] == 1)
        core.config["ALU_FORMAT_SPEC_REG0_SrcA"] = 5
        core.config.store({"THCON_SEC0_REG3_Base_address": 0x1234})
        core.set_mop_double_loop(outer=2, inner=3, loop=core.word.SETDMAREG(value=7, RegIndex16b=8))
        core.MOP(mop_type=1)
        core.wait_idle()

    ours = run(capture(three_threads(unpack)))
    record = ours.chip.cores(0).record
    assert record.sync.semaphore[Semaphore.UNPACK_SYNC] == 1
    host = run_program(three_threads(unpack)).tile.record
    assert record.config[0].tolist() == host.config[0].tolist()
    assert record.config[0].any()
    assert record.frontend.mop_config[0].tolist() == host.frontend.mop_config[0].tolist()
    assert int(record.gpr[0, 4]) == int(host.gpr[0, 4]) == 7
    assert is_idle_for_ever(record, T0)


@pytest.mark.parametrize(
    ("unpack", "message"),
    [
        (lambda core: core.semaphore(1), "reads semaphore 1 in Python"),
        (lambda core: core.wait_until(lambda: True, "nothing"), "waits for nothing"),
        (lambda core: core.wait_until(lambda: core.tile.gpr[0, 0] == 0, "a GPR"), "waits for a GPR"),
        (lambda core: core.wait_until(lambda: sum(core.tile.semaphores[:2]) == 0, "two"), "waits for two"),
    ],
)
def test_what_no_core_could_do(unpack: Callable[[Any], None], message: str) -> None:
    with pytest.raises(CompareError) as raised:
        capture(three_threads(unpack))
    assert message in raised.value.message
    assert raised.value.remedy


def test_code_needs_room() -> None:
    def unpack(core: Any) -> None:
        for _ in range(40):
            core.NOP()

    program = three_threads(unpack)
    program.input("a", (1, 0x17FF00 // 2), "bf16", tile_shape=None, address=0)
    with pytest.raises(CompareError, match="no free range of that size"):
        capture(program)


@pytest.mark.plain
def test_words_of_configuration_that_one_thread_changes() -> None:
    from bhemu.isa import encode

    def stub(*words: int, stores: tuple[int, ...] = ()) -> Stub:
        made = Stub()
        for word in words:
            made.instruction(word, merges=True)
        for register in stores:
            made.config(0, register, 1)
        return made

    def merge(register: int) -> int:
        return encode("RMWCIB1", Mask=0xF0, Data=0x5A, CfgRegAddr=register)

    assert words_of_one_thread([stub(merge(3), merge(3), merge(4)), stub(merge(4)), stub()]) == {3}
    assert words_of_one_thread([stub(merge(3)), stub(stores=(3,)), stub()]) == set()
    assert words_of_one_thread([stub(merge(9)), stub(encode("WRCFG", CfgReg=8)), stub()]) == set()
    assert words_of_one_thread([stub(merge(9)), stub(encode("SETC16", setc16_reg=0)), stub()]) == set()
    assert words_of_one_thread([stub(merge(9)), stub(encode("REG2FLOP")), stub()]) == set()
    whole, by_words = stub(merge(3)).code({3}), stub(merge(3)).code(set())
    assert len(whole) > len(by_words)  # a wait and a store in place of a word
    assert int.from_bytes(by_words[:4], "little") & 3 != 3


# --- ELF files --------------------------------------------------------------------------------------------------------


def elf(tmp_path: Path, text: str, *, at: int = 0x100, data: bytes = b"", local: bytes = b"") -> Path:
    code, labels = assemble_with_labels(text, at)
    loads = [Load(at, code)]
    if data:
        loads.append(Load(0x20000, data, size=len(data) + 8, flags=6))
    if local:
        loads.append(Load(0xFFB00000, local, flags=6))
    names = [Name(name, address) for name, address in labels.items()]
    names.append(Name("result", 0x20000, 4, kind=1))
    path = tmp_path / f"kernel{at:x}.elf"
    path.write_bytes(make_elf(loads, with_symbols(names), entry=at))
    return path


ADD_UP = """
_start: lui  a0, 0x20
        lw   a1, 0(a0)
        lw   a2, 4(a0)
        add  a1, a1, a2
store:  sw   a1, 8(a0)
__bhemu_halt:
        ebreak
        j    __bhemu_halt
"""


def test_an_elf_file_runs_to_its_ebreak(tmp_path: Path) -> None:
    made = session(load({"B": elf(tmp_path, ADD_UP, data=bytes([3, 0, 0, 0, 4, 0, 0, 0]))}))
    made.tile = (16, 11)
    ours = run(made)
    assert made.finished == "done"
    assert l1_of(ours, (16, 11))[0x20000:0x2000C].tolist() == [3, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0]
    assert not l1_of(ours)[0x20000:0x2000C].any()
    record = ours.chip.cores(ours.chip.node((16, 11)).index).record
    assert is_idle_for_ever(record, B)  # j . in place of ebreak


def test_several_cores_start_where_their_files_say(tmp_path: Path) -> None:
    text = "_start: lui a0, 0x30\n li a1, {n}\n sw a1, {at}(a0)\n end: j end\n"
    cores = ("B", "T0", "T1", "T2", "NC")
    files = {name: elf(tmp_path, text.format(n=n + 1, at=4 * n), at=0x1000 * (n + 1)) for n, name in enumerate(cores)}
    ours = run(session(load({None: files["B"]} | {name: files[name] for name in cores[1:]})))
    assert l1_of(ours)[0x30000:0x30014].view(np.uint32).tolist() == [1, 2, 3, 4, 5]


def test_ends_of_a_session(tmp_path: Path) -> None:
    made = session(load({"B": elf(tmp_path, "_start: addi a0, a0, 1\n j _start\n")}))
    made.every, made.max_clocks = 10, 1000
    ours = run(made)
    assert (made.finished, ours.time) == ("limit", 1000)
    made = session(load({"B": elf(tmp_path, "_start: lui a0, 0x20\n l: lw a1, 0(a0)\n beqz a1, l\n end: j end\n")}))
    run(made)
    assert made.finished == "stuck"


def test_memory_is_compared_as_often_as_asked(tmp_path: Path) -> None:
    path = elf(tmp_path, "_start: li a0, 300\n l: addi a0, a0, -1\n bnez a0, l\n end: j end\n")

    def calls(**wanted: Any) -> list[Call]:
        made = session(load({"B": path}))
        for name, value in wanted.items():
            setattr(made, name, value)
        ours, seen = ChipSide(), []
        for call in made.calls(ours):
            ours.call(call)
            seen.append(call)
        return seen

    often = calls(every=100)
    assert [call.a for call in often if call.name == CLOCK][:2] == [100, 100]
    assert [call.size for call in often if call.name == READ] == [0x180000] * sum(c.name == CLOCK for c in often)
    once = calls(every=100, at_end=True, spans=[Span(0x100, 16), Span(0x200, 4)])
    assert [(call.a & 0x1FFFFF, call.size) for call in once if call.name == READ] == [(0x100, 16), (0x200, 4)]
    assert once[-1].name == READ
    clocks = [call.a for call in once if call.name == CLOCK]
    assert clocks[-1] == sum(clocks[:-1])  # the other side may need longer


def test_other_tiles_are_compared(tmp_path: Path) -> None:
    made = session(load({"B": elf(tmp_path, ADD_UP)}))
    made.others, made.every = [(3, 4), (16, 11)], 100
    ours, seen = ChipSide(), []
    for call in made.calls(ours):
        if call.name == READ and not seen:  # the other side has written there meanwhile
            for number, tile in enumerate([(1, 2), (3, 4), (16, 11)]):
                l1_of(ours, tile)[5] = number + 1
        outcome = ours.call(call)
        if call.name == READ:
            assert isinstance(outcome, bytes)
            seen.append((len(outcome), outcome[5]))
    assert seen == [(0x180000, 1), (0x180000, 2), (0x180000, 3)]


def test_files_that_cannot_be_compared(tmp_path: Path) -> None:
    local = elf(tmp_path, ADD_UP, local=b"abcd")
    with pytest.raises(CompareError, match="local RAM"):
        session(load({"B": local}))
    with pytest.raises(CompareError, match="two programs"):
        load({"B": elf(tmp_path, ADD_UP), None: elf(tmp_path, ADD_UP, at=0x400)})


@compiled_only
def test_an_elf_file_on_the_library_of_bhemu(tmp_path: Path, own_library: Path) -> None:
    made = session(load({"B": elf(tmp_path, ADD_UP, data=bytes(range(8)))}))
    made.every = 3
    ours = ChipSide()
    with LibrarySide(own_library) as other:
        played = play(made.calls(ours), ours, other)
    assert (played.difference, made.finished) == (None, "done")
    assert played.compared >= 3


# --- history ----------------------------------------------------------------------------------------------------------


def history_calls(*parts: int) -> list[Call]:
    code = assemble("lui a0, 0x20\n l: addi a1, a1, 3\n sw a1, 8(a0)\n j l\n")
    setup, memory = aim(0, (1, 2), 0)
    more, registers = aim(1, (1, 2), 0xFFA00000)
    start = [Call(INIT), *setup, write(memory, code), *more, write(registers + 0x1121B0, 0x47000)]
    return [*start, *(clock(part) for part in parts)]


@pytest.mark.parametrize("parts", [(1000,), (600, 399, 1), tuple([1] * 1000)])
def test_history_ends_at_the_moment(parts: tuple[int, ...]) -> None:
    past = history(history_calls(*parts), 1000, 0, word=0x20008, lines=5)
    clocks = [int(line[:10]) for line in past.lines[1:]]
    assert clocks == [995, 996, 997, 998, 999]
    stores = [line for line in past.lines if "sw a1, 8(a0)" in line]
    assert stores
    assert all(line.endswith("<- here") for line in stores)
    assert not any("<- here" in line for line in past.lines if "sw" not in line)
    assert list(past.cores) == ["B"]
    assert not past.note


def test_history_contains_what_the_host_wrote_meanwhile() -> None:
    setup, memory = aim(2, (1, 2), 0)
    hold, registers = aim(3, (1, 2), 0xFFA00000)
    calls = [*history_calls(900), *setup, write(memory + 4, assemble("end: j end")), clock(50)]
    past = history([*calls, *hold, write(registers + 0x1121B0, 0x47800), clock(50)], 1000, 0)
    assert past.cores == {}
    assert int(past.lines[-1][:10]) < 950


def test_history_of_a_refusal_says_so() -> None:
    code = assemble("li a0, 5\n lw a1, 0(a0)\n")
    setup, memory = aim(0, (1, 2), 0)
    more, registers = aim(1, (1, 2), 0xFFA00000)
    calls = [Call(INIT), *setup, write(memory, code), *more, write(registers + 0x1121B0, 0x47000), clock(9)]
    past = history(calls, 2, 0)
    assert past.note.startswith("then: ")
    assert past.cores == {"B": "halted at 0x00004"}


@compiled_only
def test_the_recorder_follows_the_order_of_the_simulator() -> None:
    """A recorded copy of a tile takes the same rounds as the tile on the chip."""
    made, ours = capture(load_program(EXAMPLES / "datacopy.py")), ChipSide()
    for call in made.calls(ours):
        if call.name == CLOCK:
            break
        ours.call(call)
    chip = ours.chip
    chip.cores(0)
    tile = Tile()
    tile.restore(Snapshot(chip.tiles.view(np.ndarray)[0:1].view(np.uint8).copy()))
    recorder = CoreRecorder()
    recorder.attach(tile)
    moved = 0
    for _ in range(60):
        tile.clock(5)
        chip.clock(5)
        theirs, here = chip.cores(0).record, tile.record
        for name in ("core_pc", "core_state", "core_retired", "issued", "sync", "frontend"):
            assert (theirs[name] == here[name]).all(), name
        moved += int(here.core_state[T0] == 1)
    assert moved > 5
    expanded = sum(int(tile.record.issued[:, INSTRUCTIONS[name].opcode].sum()) for name in ("MOP", "REPLAY"))
    assert len(recorder.log().tensix.rows) == int(tile.record.issued.sum()) - expanded


# --- traces of clients ------------------------------------------------------------------------------------------------


def test_exit_and_init_again() -> None:
    ours = ChipSide()
    setup, paddr = aim(0, (1, 2), 0x1000)
    for call in (Call(INIT), *setup, write(paddr, 5), clock(3), Call(EXIT), Call(INIT)):
        assert ours.call(call) == b""
    assert not l1_of(ours)[0x1000:0x1004].any()
    with pytest.raises(BhemuError):
        ChipSide().chip  # noqa: B018
    assert WRITE != READ
