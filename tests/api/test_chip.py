"""`bhemu.Chip`: tiles, memory, programs on many tiles, runs."""

from __future__ import annotations

import numpy as np
import pytest

import bhemu
from bhemu.api.chip import Chip
from bhemu.api.chip_report import explain_device
from bhemu.api.chip_tile import ChipTile
from bhemu.api.semihosting import Semihosting
from bhemu.chip.coordinates import SIMULATOR, Harvesting
from bhemu.errors import (
    BhemuError,
    ConfigurationError,
    CycleLimit,
    Deadlock,
    MemoryError_,
    ProgramError,
    UndefinedBehavior,
)
from tests.chip.noc_programs import ATOMIC, DATA, INCREMENT, READ, WRITE, at, request
from tests.loader.boot_programs import program, store, write_elf

pytestmark = pytest.mark.plain

FLAG = DATA + 0x100


def wait_for(address: int, value: int) -> str:
    """Poll a word of the own L1 until it has a value, then halt."""
    return f"li a1, {address:#x}\nli a2, {value}\nwait: lw a3, 0(a1)\nbne a3, a2, wait\nebreak"


def add_one(me: tuple[int, int], other: tuple[int, int]) -> str:
    """Add 1 to FLAG in another tile's L1."""
    back = {"back": DATA + 0x200, "back_hi": at(*me)}
    return request(ctrl=ATOMIC, target=FLAG, target_hi=at(*other), length=INCREMENT, data=1, **back)


def spin(turns: int) -> str:
    return f"li s0, {turns}\nspin: addi s0, s0, -1\nbnez s0, spin\n"


@pytest.fixture
def chip() -> Chip:
    return Chip()


# --- tiles ---------------------------------------------------------------------------------------


def test_p150_has_all_tiles_and_banks_and_p100_has_120_and_7() -> None:
    p150, p100 = bhemu.Chip(), bhemu.Chip("p100")
    assert (len(p150.tensix), len(p150.dram)) == (140, 8)
    assert (len(p100.tensix), len(p100.dram)) == (120, 7)
    assert [tile.place for tile in p150.tensix[:15]] == [*((x, 2) for x in (*range(1, 8), *range(10, 17))), (1, 3)]
    assert p100.tensix[-1].place == (14, 11)
    assert "120 Tensix tiles, 7 DRAM banks" in repr(p100)


@pytest.mark.rule("tile N7")
def test_tiles_are_named_by_translated_coordinates() -> None:
    """Good columns in rising order."""
    chip = Chip(harvesting=Harvesting(columns=(0, 3)))
    assert chip[1, 2].node.place == (2, 2)
    assert chip.tile(3, 5).node.place == (5, 5)
    assert chip[1, 2].read_word(0xFFB20148) == at(1, 2)  # NOC_ID_LOGICAL
    chip[1, 2].write(0x100, b"here")
    assert chip.device.tiles["l1"][chip[1, 2].node.index, 0x100:0x104].tobytes() == b"here"


@pytest.mark.parametrize("place", [(0, 0), (8, 2), (15, 2), (16, 11), (17, 12)])
def test_tile_that_the_product_does_not_have_is_refused(place: tuple[int, int]) -> None:
    with pytest.raises(UndefinedBehavior, match="is not a Tensix tile of this chip") as refusal:
        Chip("p100")[place]
    assert "x 1 to 7 and 10 to 14, y 2 to 11" in (refusal.value.remedy or "")


def test_unknown_board_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="board 'n150' is not known"):
        Chip("n150")


@pytest.mark.parametrize(
    "wrong", [{"columns": (3, 3)}, {"columns": (14,)}, {"dram": 8}, {"ethernet": (4, 4)}, {"ethernet": (-1,)}]
)
def test_harvesting_that_makes_no_sense_is_refused(wrong: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(ConfigurationError, match=r"Tensix columns|DRAM channel 8|Ethernet tiles"):
        Harvesting(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"threads": 0}, {"quantum": 0}])
def test_no_thread_and_no_clock_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="= 0 is out of range"):
        Chip(**options)  # type: ignore[arg-type]


def test_view_of_a_tile_is_writable_and_the_chip_sees_it(chip: Chip) -> None:
    tile = chip[4, 5]
    tile.gpr[1, 7] = 99
    tile.lregs[2] = 5
    tile.l1[0x400:0x404] = 7
    assert chip[4, 5].gpr[1, 7] == 99
    assert tile.read(0x3FE, 8) == b"\0\0\x07\x07\x07\x07\0\0"
    assert tile.write_tensor(0x10000, np.full((32, 32), 2.5, np.float32), "bf16") == 2048
    assert (chip[4, 5].read_tensor(0x10000, (32, 32), "bf16") == 2.5).all()
    assert not chip[4, 6].l1.any()
    assert tile.cores["T1"].state == "in reset"
    assert "<tile 4-5: B in reset" in repr(tile)


def test_array_of_a_tile_stays_valid_while_the_chip_runs(chip: Chip) -> None:
    """What is written to an array after clocks wakes a core that polls it."""
    tile = chip[3, 3]
    l1 = tile.l1
    chip.load(program(wait_for(FLAG, 7)), tiles=tile)
    chip.start()
    chip.clock(5000)
    assert tile.cores["B"].state == "polling"
    l1[FLAG] = 7
    assert chip.run().reason == "done"
    assert tile.cores["B"].halt_reason == "ebreak"


def test_core_that_the_host_halts_and_resumes_goes_on_at_the_chips_time(chip: Chip) -> None:
    tile = chip[3, 3]
    chip.load(program("loop: addi t0, t0, 1\nj loop"), tiles=(3, 3))
    chip.start()
    chip.clock(10)
    core = tile.cores["B"]
    core.halt()
    chip.clock(1000)
    before = core.retired
    assert before < 15
    core.resume()
    assert core.retired == before
    chip.clock(10)
    assert 5 <= core.retired - before <= 15


# --- memory --------------------------------------------------------------------------------------


def test_banks_are_separate_and_each_holds_4_gib(chip: Chip) -> None:
    for number, bank in enumerate(chip.dram):
        bank.write(0xFFFFFFFF - number, bytes([number + 1]))
    for number, bank in enumerate(chip.dram):
        assert bank.read(0xFFFFFFFF - number, 1) == bytes([number + 1])
        assert bank.read(0x1000, 4) == bytes(4)
    with pytest.raises(MemoryError_):
        chip.dram[0].write(0xFFFFFFFF, b"ab")
    assert [bank.place for bank in chip.dram] == [(x, y) for x in (17, 18) for y in (12, 15, 18, 21)]


@pytest.mark.parametrize(("address", "size"), [(-1, 4), (0x17FFFE, 4), (0x200000, 4), (0, 0), (16, -4)])
def test_access_that_reaches_out_of_a_tile_is_refused(chip: Chip, address: int, size: int) -> None:
    with pytest.raises(MemoryError_):
        chip[1, 2].read(address, size)
    if size > 0:
        with pytest.raises(MemoryError_):
            chip[1, 2].write(address, bytes(size))


@pytest.mark.parametrize(("address", "size"), [(-1, 4), (0xFFFFFFFE, 4), (1 << 32, 1), (1 << 40, 4), (16, -4)])
def test_access_that_reaches_out_of_a_bank_is_refused(chip: Chip, address: int, size: int) -> None:
    with pytest.raises(MemoryError_, match="outside of the DRAM bank at 18-12"):
        chip.dram[4].read(address, size)


def test_bank_that_is_off_is_left_out() -> None:
    chip = Chip(harvesting=SIMULATOR)
    assert [bank.node.index for bank in chip.dram] == [4, 5, 7, 6, 0, 1, 3]


@pytest.mark.parametrize("name", ["bf16", "bfp8", "fp32", "int8"])
def test_tensor_in_dram_is_the_tensor_of_a_tile(chip: Chip, name: str) -> None:
    values = np.random.default_rng(3).integers(-60, 60, (64, 96)).astype(np.float32)
    if name == "int8":
        values = values.astype(np.int8)
    size = chip.dram[5].write_tensor(0x40000, values, name)
    assert chip[1, 2].write_tensor(0x40000, values, name) == size
    assert chip.dram[5].read(0x40000, size) == chip[1, 2].read(0x40000, size)
    expected = chip[1, 2].read_tensor(0x40000, values.shape, name)
    assert np.array_equal(chip.dram[5].read_tensor(0x40000, values.shape, name), expected)
    assert chip.interleaved.write_tensor(0x80000, values, name) == size
    assert np.array_equal(chip.interleaved.read_tensor(0x80000, values.shape, name), expected)


@pytest.mark.parametrize("board", ["p150", "p100"])
def test_page_i_of_an_interleaved_buffer_is_in_bank_i_modulo_banks(board: str) -> None:
    chip = Chip(board)
    banks = len(chip.dram)
    tiles = np.arange(20, dtype=np.float32).repeat(1024).reshape(640, 32)
    chip.interleaved.write_tensor(0x1000, tiles, "bf16")
    for page in range(20):
        tile = chip.dram[page % banks].read_tensor(0x1000 + page // banks * 2048, (32, 32), "bf16")
        assert (tile == page).all()
    assert chip.dram[20 % banks].read(0x1000 + 20 // banks * 2048, 2048) == bytes(2048)


def test_pages_begin_at_multiples_of_64(chip: Chip) -> None:
    content = bytes(range(250))
    chip.interleaved.write(0x40, content, page_size=10)
    assert chip.interleaved.read(0x40, 250, page_size=10) == content
    assert chip.dram[1].read(0x40 + 64, 11) == content[90:100] + b"\0"
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    chip.interleaved.write_tensor(0x4000, rows, "fp32", tile_shape=None)
    assert np.frombuffer(chip.dram[2].read(0x4000, 12), np.float32).tolist() == [6, 7, 8]
    with pytest.raises(MemoryError_, match="not a multiple of 64"):
        chip.interleaved.write(0x20, content, page_size=10)
    with pytest.raises(MemoryError_, match="pages of 0 bytes"):
        chip.interleaved.read(0x40, 10, page_size=0)


def test_row_major_bfp_tensor_has_no_pages_by_itself(chip: Chip) -> None:
    """Its exponents are in one section before the datums."""
    values = np.ones((3, 32), np.float32)
    with pytest.raises(MemoryError_, match="say how large a page is") as refusal:
        chip.interleaved.write_tensor(0, values[:, :30], "bfp8", tile_shape=None)
    assert "pages of one size" in str(refusal.value)
    chip.interleaved.write_tensor(0, values, "bfp8", tile_shape=None, page_size=64)
    assert (chip.interleaved.read_tensor(0, (3, 32), "bfp8", tile_shape=None, page_size=64) == 1).all()


def test_what_is_read_can_be_changed(chip: Chip) -> None:
    chip.dram[0].write_tensor(0, np.ones(16, np.float32), "fp32", tile_shape=None)
    back = chip.dram[0].read_tensor(0, (16,), "fp32", tile_shape=None)
    back += 1
    assert back[0] == 2


@pytest.mark.rule("tile N27")
def test_host_gives_memory_to_the_chip() -> None:
    """What goes to the PCIe tile, in its windows from 1 << 60 on, is the host's."""
    memory = bytearray(0x100)

    def write(address: int, content: bytes) -> None:
        memory[address : address + len(content)] = content

    chip = Chip(host=bhemu.HostMemory(lambda address, size: bytes(memory[address : address + size]), write))
    me = {"back_hi": at(1, 2)}
    pcie = 1 << 28  # bit 60 of an address
    text = request(ctrl=WRITE, target=DATA, target_hi=at(1, 2), back=0x40, back_mid=pcie, back_hi=at(19, 24), length=16)
    text += request(ctrl=READ, target=0x40, target_mid=pcie, target_hi=at(19, 24), back=DATA + 64, **me, length=16)
    chip.load(program(text + "ebreak"), tiles=(1, 2))
    chip[1, 2].write(DATA, b"from a tile 1-2.")
    chip.start()
    chip.run()
    assert memory[0x40:0x50] == b"from a tile 1-2."
    assert chip[1, 2].read(DATA + 64, 16) == b"from a tile 1-2."
    with pytest.raises(ConfigurationError, match="of host memory"):
        Chip().device.read_node(chip.device.node((19, 24)), (1 << 60) + 0x40, 4)


# --- programs and runs ---------------------------------------------------------------------------


def test_program_runs_on_all_tiles(chip: Chip) -> None:
    assert chip.load(program(store(5))) == ("B",)
    chip.start()
    result = chip.run()
    assert result.reason == "done"
    assert len(result.tiles) == 140
    assert {tile.read_word(0x20000) for tile in chip.tensix} == {5}
    assert {(r.clocks, r.cores[0].name, r.cores[0].state, r.cores[0].why) for r in result.tiles.values()} == {
        (result.clocks, "B", "halted", "ebreak")
    }
    machine = bhemu.Machine()
    machine.load(program(store(5)))
    machine.start()
    assert result.clocks == machine.run().clocks


def test_files_by_core_go_to_chosen_tiles(chip: Chip, tmp_path: object) -> None:
    first = write_elf(tmp_path / "b.elf", store(1, 0x20000))  # type: ignore[operator]
    second = program(store(2, 0x20004), 0x6000)
    assert chip.load({"B": first, "t0": second}, tiles=[(1, 2), chip[5, 6]]) == ("B", "T0")
    chip.load(program(store(3)), tiles=chip[2, 2])
    chip.start(tiles=[(1, 2), (5, 6), (2, 2)])
    result = chip.run()
    assert sorted(result.tiles) == [(1, 2), (2, 2), (5, 6)]
    for place in ((1, 2), (5, 6)):
        assert (chip[place].read_word(0x20000), chip[place].read_word(0x20004)) == (1, 2)
        assert [core.name for core in result[place].cores] == ["B", "T0"]
    assert chip[2, 2].read_word(0x20000) == 3
    assert chip[3, 2].read_word(0x20000) == 0


def test_programs_that_overlap_are_refused_and_nothing_is_loaded(chip: Chip) -> None:
    chip.load(program(store(1), 0x3000), "T1", tiles=(2, 2))
    with pytest.raises(MemoryError_, match="belongs to two programs"):
        chip.load(program(store(2), 0x3000), "B")
    assert not chip[1, 2].l1.any()
    chip.load(program(store(2), 0x3000), "T1")  # in its place


def test_only_named_cores_of_named_tiles_start(chip: Chip) -> None:
    chip.load({"B": program(store(1)), "T0": program(store(2, 0x20004), 0x6000)})
    chip.start("T0", tiles=(1, 2))
    assert list(chip.run().tiles) == [(1, 2)]
    assert (chip[1, 2].read_word(0x20000), chip[1, 2].read_word(0x20004)) == (0, 2)
    chip.hold()
    with pytest.raises(ProgramError, match="no core is out of reset"):
        chip.run()


def test_start_without_program_is_refused_and_starts_nothing(chip: Chip) -> None:
    with pytest.raises(ProgramError, match="no tile has a program"):
        chip.start()
    chip.load(program(store(1)), tiles=(1, 2))
    with pytest.raises(ProgramError, match="no core has a program"):
        chip.start(tiles=[(1, 2), (2, 2)])
    assert chip[1, 2].cores["B"].state == "in reset"


def test_run_ends_when_the_named_tiles_are_done(chip: Chip) -> None:
    """Others may go on."""
    chip.load(program("loop: addi t0, t0, 1\nj loop"))
    chip.load(program(store(9)), tiles=(7, 7))
    chip.start(tiles=[(1, 2), (7, 7)])
    result = chip.run(tiles=(7, 7))
    assert (result.reason, list(result.tiles)) == ("done", [(7, 7)])
    assert chip[1, 2].cores["B"].state == "running"


def test_run_ends_when_a_mailbox_says_so(chip: Chip) -> None:
    """A word that another tile writes over the NoC."""
    me, other = (1, 2), (12, 9)
    chip.load(program(add_one(other, me) + "loop: addi t0, t0, 1\nj loop"), tiles=other)
    chip.load(program("loop: addi t0, t0, 1\nj loop"), tiles=me)
    chip.start()
    result = chip.run(until=lambda: chip[me].read_word(FLAG) == 1)
    assert result.reason == "until"
    assert result.clocks == chip.time
    assert 0 < result.clocks <= 128
    assert {core.state for tile in result.tiles.values() for core in tile.cores} == {"running"}


@pytest.mark.parametrize("first", [(1, 2), (16, 11)])
def test_signal_of_the_last_clock_is_not_a_deadlock(first: tuple[int, int]) -> None:
    """A tile that sleeps is woken by one that halts right after the request; whichever comes first in a clock."""
    chip = Chip()
    second = (16, 11) if first == (1, 2) else (1, 2)
    chip.load(program(spin(3000) + add_one(first, second) + "ebreak"), tiles=first)
    chip.load(program(wait_for(FLAG, 1)), tiles=second)
    chip.start()
    result = chip.run()
    assert result.reason == "done"
    assert {core.state for tile in result.tiles.values() for core in tile.cores} == {"halted"}


def test_results_and_clocks_do_not_depend_on_whether_somebody_holds_arrays() -> None:
    ends = []
    for hold in (False, True):
        chip = Chip()
        for place in ((1, 2), (3, 2)):
            chip.load(program(spin(500) + add_one(place, (2, 2)) + "ebreak"), tiles=place)
        chip.load(program(wait_for(FLAG, 2)), tiles=(2, 2))
        chip.start()
        held = [tile.l1 for tile in chip.tensix] if hold else []
        result = chip.run()
        ends.append((result, [tile.read(0, 0x30000) for tile in chip.tensix[:4]], len(held)))
    assert ends[0][:2] == ends[1][:2]


def test_ecall_of_every_tile_is_served(chip: Chip) -> None:
    """Writes its text, then exits with the tile's row."""
    text = f"li a0, 1\nli a1, {DATA:#x}\nli a2, 6\nli a7, 64\necall\n"
    leave = "li a1, 0xffb20148\nlw a0, 0(a1)\nsrli a0, a0, 6\nli a7, 93\necall"
    places = [(1, 2), (3, 9), (16, 11)]
    written: dict[tuple[int, int], bytes] = {}

    def serve(tile: ChipTile) -> Semihosting:
        return Semihosting(lambda stream, content: written.__setitem__(tile.place, content))

    chip.load(program(text + leave), tiles=places)
    for x, y in places:
        chip[x, y].write(DATA, b"%02d-%02d\n" % (x, y))
    chip.start()
    result = chip.run(semihosting=serve)
    assert result.reason == "done"
    assert {place: tile.status for place, tile in result.tiles.items()} == {(1, 2): 2, (3, 9): 9, (16, 11): 11}
    assert written == {(x, y): b"%02d-%02d\n" % (x, y) for x, y in places}
    assert 10 <= result.clocks <= 20 + 32 * 2


def test_unserved_ecall_is_a_deadlock(chip: Chip) -> None:
    chip.load(program("li a7, 93\necall"), tiles=(2, 2))
    chip.start()
    with pytest.raises(Deadlock, match="tile 2-2\n    core B at 0x00004 _start\\+0x4: halted by ecall number 93"):
        chip.run()


def test_service_that_does_not_exist_is_refused_with_its_place(chip: Chip) -> None:
    chip.load(program("li a7, 1234\necall"), tiles=(2, 2))
    chip.start()
    with pytest.raises(UndefinedBehavior, match=r"Tensix tile 2-2: core B at 0x00004 _start\+0x4: ecall: ") as refusal:
        chip.run(semihosting=lambda tile: Semihosting())
    assert refusal.value.tile == (2, 2)


# --- refusals ------------------------------------------------------------------------------------


def test_refused_instruction_says_tile_core_symbol_and_the_chip_goes_on(chip: Chip) -> None:
    chip.load(program("li a0, 0x300000\nlw a1, 0(a0)"), tiles=(4, 4))
    chip.load(program(store(6)), tiles=(5, 4))
    chip.start()
    with pytest.raises(BhemuError, match=r"Tensix tile 4-4: core B at 0x00004 _start\+0x4: lw") as refusal:
        chip.run()
    assert refusal.value.tile == (4, 4)
    assert refusal.value.core == 0
    assert chip[4, 4].cores["B"].halt_reason == "refused"
    chip.run(tiles=(5, 4))
    assert chip[5, 4].read_word(0x20000) == 6


def test_refusal_on_a_harvested_chip_gives_both_names_of_the_tile() -> None:
    chip = Chip(harvesting=Harvesting(columns=(0,)))
    for semihosting, text in ((None, "li a0, 0x300000\nlw a1, 0(a0)"), (lambda _: Semihosting(), "li a7, 1234\necall")):
        chip.load(program(text), tiles=(4, 4))
        chip.start()
        with pytest.raises(BhemuError, match="Tensix tile 5-4: core B") as refusal:
            chip.run(semihosting=semihosting)
        assert "translated coordinates the tile is 4-4" in str(refusal.value)


def test_chip_where_nothing_can_move_says_who_waits_for_what(chip: Chip) -> None:
    chip.load(program(wait_for(FLAG, 1)))
    chip.load(program("li a1, 0xffec1000\nlw a2, 0(a1)"), tiles=(10, 7))
    chip.load(program(store(1)), tiles=(11, 7))
    chip.start()
    with pytest.raises(Deadlock, match=r"nothing on the chip can move after \d\d clocks\n") as refusal:
        chip.run()
    text = str(refusal.value)
    assert "tile 1-2\n    core B at 0x0000c _start+0xc: polls 0x20100, which holds 0x0\n" in text
    assert "137 more tiles the same: 2-2, 3-2, 4-2, 5-2, 6-2, 7-2, 10-2, 11-2 and 129 others\n" in text
    assert "tile 10-7\n    core B at 0x00004 _start+0x4: waits for a word in the mailbox from T0" in text
    assert "11-7\n" not in text
    assert len(text.splitlines()) < 10


def test_card_without_names_says_the_same(chip: Chip) -> None:
    """For clients of the C library, who may yet write what is waited for."""
    assert explain_device(chip.device) == ""
    chip.load(program(wait_for(FLAG, 1)), tiles=[(1, 2), (4, 4)])
    chip.load(program(store(1)), tiles=(11, 7))
    chip.start()
    assert explain_device(chip.device) == ""
    chip.clock(1000)
    assert explain_device(chip.device).splitlines() == [
        "  tile 1-2",
        "    core B at 0x0000c: polls 0x20100, which holds 0x0",
        "  1 more tile the same: 4-4",
    ]


def test_many_ways_to_wait_are_not_all_explained(chip: Chip) -> None:
    for n, tile in enumerate(chip.tensix[:20]):
        chip.load(program(wait_for(FLAG + 4 * n, 1)), tiles=tile)
    chip.start()
    with pytest.raises(Deadlock, match="14 more tiles in 14 other ways") as refusal:
        chip.run()
    assert str(refusal.value).count("polls") == 6


def test_wait_for_a_condition_that_never_comes_true_is_a_deadlock_too(chip: Chip) -> None:
    chip.load(program(wait_for(FLAG, 1)), tiles=(1, 2))
    chip.start()
    with pytest.raises(Deadlock, match="polls 0x20100"):
        chip.run(until=lambda: False)


def test_program_that_does_not_end_is_a_clock_limit(chip: Chip) -> None:
    chip.load(program("loop: addi t0, t0, 1\nj loop"), tiles=[(1, 2), (2, 2)])
    chip.load(program(store(1)), tiles=(3, 2))
    chip.start()
    with pytest.raises(CycleLimit, match="not done after 1,000 clocks") as refusal:
        chip.run(max_clocks=1000)
    assert "  tile 1-2\n    core B at 0x00000 _start: running\n  1 more tile the same: 2-2" in str(refusal.value)
    assert "3-2" not in str(refusal.value)
    assert chip.time == 1000
