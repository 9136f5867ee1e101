"""Wrong arguments of public functions: each is refused with a remedy, none is accepted in silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bhemu
from bhemu import formats, numerics
from bhemu.errors import BhemuError
from tests.loader.boot_programs import program

pytestmark = pytest.mark.plain

Call = Callable[[Any, Any], object]

NO_INTEGER: list[Any] = [None, "1", 1.5, True, np.float32(1), np.bool_(True), [1], b"1"]
NEGATIVE: list[Any] = [-1, np.int64(-1), -(1 << 65)]
HUGE: list[Any] = [1 << 65]
COUNT = NO_INTEGER + NEGATIVE + HUGE
NO_FLAG: list[Any] = [None, 1, 0, "yes", [], 1.0]
NO_TEXT: list[Any] = [1, 1.5, b"B", ["B"], True]
NO_FILE: list[Any] = [None, 5, 1.5, ["a"], b"a", True, "a\0b", ""]
NO_FUNCTION: list[Any] = [5, "f", [print]]
NO_BYTES: list[Any] = [5, None, "text", [1, 2], 1.5, np.zeros(4, np.float32)]
NO_PLACE: list[Any] = [None, 5, "12", (1,), (1, 2, 3), (1.0, 2), (True, 2), ("1", 2), (99, 99), (-1, 2)]
NO_SHAPE: list[Any] = [None, "32", 1.5, (-32, 32), (1.5, 32), (True, 32), ("a", 32), (31, 32), (1 << 65, 32)]
NO_FORMAT: list[Any] = [None, 5, "bf17", ["bf16"], 1.5]
NO_TILE_SHAPE: list[Any] = [5, "32", (32,), (31, 32), (32.5, 32), (None, None), (-32, 32)]
NO_ARRAY: list[Any] = ["text", [[1], [1, 2]], object(), np.zeros((32, 32), complex), None, {}, [["a"] * 32] * 32]


CALLS: dict[str, tuple[Call, list[Any]]] = {
    # --- tiles ---------------------------------------------------------------------------------------
    "Tile(allow_open)": (lambda f, v: bhemu.Tile(allow_open=v), NO_FLAG),
    "Tile.execute(thread)": (lambda f, v: f.tile.execute(v, "NOP"), [*COUNT, 3]),
    "Tile.execute(instructions)": (
        lambda f, v: f.tile.execute(0, v),
        [None, 1.5, True, -1, 1 << 32, b"NOP", [None], [1.5], "NOSUCH 1", {1.5: 2}],
    ),
    "Tile.clock(clocks)": (lambda f, v: f.tile.clock(v), COUNT),
    "Tile.restore(snapshot)": (lambda f, v: f.tile.restore(v), [None, 5, b"", "x"]),
    "Tile.load_word(address)": (lambda f, v: f.tile.load_word(v), COUNT),
    "Tile.load_word(core)": (lambda f, v: f.tile.load_word(0xFFE00000, v), [*NO_TEXT, None, "X", ""]),
    "Tile.store_word(address)": (lambda f, v: f.tile.store_word(v, 1), COUNT),
    "Tile.store_word(value)": (lambda f, v: f.tile.store_word(0xFFE00000, v), [*COUNT, 1 << 32]),
    "Tile.write_tensor(address)": (lambda f, v: f.tile.write_tensor(v, f.ones, "bf16"), [*COUNT, 8, 0x180000]),
    "Tile.write_tensor(array)": (lambda f, v: f.tile.write_tensor(0, v, "bf16"), NO_ARRAY),
    "Tile.write_tensor(format)": (lambda f, v: f.tile.write_tensor(0, f.ones, v), NO_FORMAT),
    "Tile.write_tensor(tile_shape)": (
        lambda f, v: f.tile.write_tensor(0, f.ones, "bf16", tile_shape=v),
        NO_TILE_SHAPE,
    ),
    "Tile.write_tensor(rounding)": (
        lambda f, v: f.tile.write_tensor(0, f.ones, "bf16", rounding=v),
        [None, 5, "up", ["nearest"]],
    ),
    "Tile.read_tensor(address)": (lambda f, v: f.tile.read_tensor(v, (32, 32), "bf16"), [*COUNT, 8, 0x180000]),
    "Tile.read_tensor(shape)": (lambda f, v: f.tile.read_tensor(0, v, "bf16"), NO_SHAPE),
    "Tile.read_tensor(format)": (lambda f, v: f.tile.read_tensor(0, (32, 32), v), NO_FORMAT),
    "Tile.config[name]": (lambda f, v: f.tile.config[v], [None, 5, "NOSUCH", b"x", True]),
    "Tile.config[name] = value": (
        lambda f, v: f.tile.config.__setitem__("THCON_SEC0_REG1_Out_data_format", v),
        [*COUNT, 16],
    ),
    "Tile.config.for_bank": (lambda f, v: f.tile.config.for_bank(v), [*COUNT, 2]),
    "Tile.config.for_thread": (lambda f, v: f.tile.config.for_thread(v), [*COUNT, 3]),
    "Tile.srca.bank": (lambda f, v: f.tile.srca.bank(v), [*COUNT, 2]),
    "Tile.cores[core]": (lambda f, v: f.tile.cores[v], [None, 1.5, True, "X", -1, 5, b"B"]),
    "Tile.cores[core].pc": (lambda f, v: setattr(f.tile.cores["B"], "pc", v), COUNT),
    # --- machines ------------------------------------------------------------------------------------
    "Machine(tile)": (lambda f, v: bhemu.Machine(v), [5, "tile", True]),
    "Machine(allow_open)": (lambda f, v: bhemu.Machine(allow_open=v), NO_FLAG),
    "Machine.load(program)": (lambda f, v: f.machine.load(v), [*NO_FILE, "no such file"]),
    "Machine.load(core)": (lambda f, v: f.machine.load(f.program, v), [*NO_TEXT, "X", ""]),
    "Machine.hold": (lambda f, v: f.machine.hold(v), [*NO_TEXT, None, "X"]),
    "Machine.start": (lambda f, v: f.machine.start(v), [*NO_TEXT, None, "X", "NC"]),
    "Machine.run(max_clocks)": (lambda f, v: f.started.run(max_clocks=v), [*COUNT, 0]),
    "Machine.run(until)": (
        lambda f, v: f.started.run(until=v, max_clocks=10),
        [1.5, True, [4], b"main", "nosuch", -4, 2, 1 << 40],
    ),
    "Machine.run(semihosting)": (lambda f, v: f.started.run(semihosting=v, max_clocks=10), [5, "x", print]),
    "Machine.run(progress)": (lambda f, v: f.started.run(progress=v, max_clocks=10), NO_FUNCTION),
    "Machine.address_of": (lambda f, v: f.machine.address_of(v), [*NO_TEXT, None, "nosuch"]),
    "load_elf(path)": (lambda f, v: bhemu.load_elf(v), [*NO_FILE, ".", "no such file"]),
    # --- chips ---------------------------------------------------------------------------------------
    "Chip(board)": (lambda f, v: bhemu.Chip(v), [None, *NO_TEXT, "p300", ""]),
    "Chip(harvesting)": (lambda f, v: bhemu.Chip(harvesting=v), [5, "p100", (1, 2), {}]),
    "Chip(allow_open)": (lambda f, v: bhemu.Chip(allow_open=v), NO_FLAG),
    "Chip(threads)": (lambda f, v: bhemu.Chip(threads=v), [*COUNT, 0, 100000]),
    "Chip(quantum)": (lambda f, v: bhemu.Chip(quantum=v), [*COUNT, 0]),
    "Chip(simulator_order)": (lambda f, v: bhemu.Chip(simulator_order=v), NO_FLAG),
    "Chip(host)": (lambda f, v: bhemu.Chip(host=v), [5, "memory", print]),
    "Harvesting(columns)": (lambda f, v: bhemu.Harvesting(columns=v), [None, 5, "12", (1.5,), (99,), (-1,), (True,)]),
    "Harvesting(dram)": (lambda f, v: bhemu.Harvesting(dram=v), [1.5, "1", True, 8, -1, [1]]),
    "HostMemory(read)": (lambda f, v: bhemu.HostMemory(read=v), NO_FUNCTION),
    "HostMemory(write)": (lambda f, v: bhemu.HostMemory(write=v), NO_FUNCTION),
    "Chip.tile": (lambda f, v: f.chip.tile(v, 2), [*COUNT, 8]),
    "Chip[place]": (lambda f, v: f.chip[v], NO_PLACE),
    "Chip.load(tiles)": (lambda f, v: f.chip.load(f.program, tiles=v), [p for p in NO_PLACE if p is not None]),
    "Chip.load(programs)": (lambda f, v: f.chip.load(v, tiles=(1, 2)), [*NO_FILE, {"X": "a"}, {5: "a"}]),
    "Chip.load(core)": (lambda f, v: f.chip.load(f.program, v, tiles=(1, 2)), [*NO_TEXT, "X"]),
    "Chip.hold": (lambda f, v: f.chip.hold(v, tiles=(1, 2)), [*NO_TEXT, "X"]),
    "Chip.start": (lambda f, v: f.chip.start(v, tiles=(1, 2)), [*NO_TEXT, "X"]),
    "Chip.clock": (lambda f, v: f.chip.clock(v), COUNT),
    "Chip.run(max_clocks)": (lambda f, v: f.chip.run(max_clocks=v), [*COUNT, 0]),
    "Chip.run(until)": (lambda f, v: f.chip.run(until=v), NO_FUNCTION),
    "Chip.run(semihosting)": (lambda f, v: f.chip.run(semihosting=v), NO_FUNCTION),
    "Chip.run(progress)": (lambda f, v: f.chip.run(progress=v), NO_FUNCTION),
    "Chip.run(tiles)": (lambda f, v: f.chip.run(tiles=v), [5, "12", (99, 99)]),
    "Chip.restore": (lambda f, v: f.chip.restore(v), [None, 5, "x", b""]),
    "Chip.boot_firmware": (lambda f, v: f.chip.boot_firmware(v), [*NO_FILE, "no such directory"]),
    "ChipSnapshot.load": (lambda f, v: bhemu.ChipSnapshot.load(v), [*NO_FILE, ".", "no such file"]),
    "ChipSnapshot.save": (lambda f, v: f.snapshot.save(v), [None, 5, 1.5, ["a"], "a\0b", "no such directory/copy"]),
    "ChipTile.read(address)": (lambda f, v: f.chip[1, 2].read(v, 4), COUNT),
    "ChipTile.read(size)": (lambda f, v: f.chip[1, 2].read(0, v), [*COUNT, 0]),
    "ChipTile.write(address)": (lambda f, v: f.chip[1, 2].write(v, b"1234"), COUNT),
    "ChipTile.write(content)": (lambda f, v: f.chip[1, 2].write(0, v), [*NO_BYTES, b""]),
    "ChipTile.read_word": (lambda f, v: f.chip[1, 2].read_word(v), COUNT),
    "ChipTile.write_word(value)": (lambda f, v: f.chip[1, 2].write_word(0, v), [*COUNT, 1 << 32]),
    "ChipTile.write_tensor(address)": (lambda f, v: f.chip[1, 2].write_tensor(v, f.ones, "bf16"), [*COUNT, 8]),
    "DramBank.read(address)": (lambda f, v: f.chip.dram[0].read(v, 4), COUNT),
    "DramBank.read(size)": (lambda f, v: f.chip.dram[0].read(0, v), COUNT),
    "DramBank.write(content)": (lambda f, v: f.chip.dram[0].write(0, v), NO_BYTES),
    "DramBank.write_tensor(address)": (lambda f, v: f.chip.dram[0].write_tensor(v, f.ones, "bf16"), COUNT),
    "interleaved.read(address)": (lambda f, v: f.chip.interleaved.read(v, 64, page_size=64), [*COUNT, 4]),
    "interleaved.read(size)": (lambda f, v: f.chip.interleaved.read(0, v, page_size=64), COUNT),
    "interleaved.read(page_size)": (lambda f, v: f.chip.interleaved.read(0, 64, page_size=v), COUNT[:-1]),
    "interleaved.write(content)": (lambda f, v: f.chip.interleaved.write(0, v, page_size=64), NO_BYTES),
    "interleaved.write_tensor(page_size)": (
        lambda f, v: f.chip.interleaved.write_tensor(0, f.ones, "bf16", page_size=v),
        ["1", 1.5, True, -1, 0, [1]],
    ),
    "interleaved.read_tensor(shape)": (lambda f, v: f.chip.interleaved.read_tensor(0, v, "bf16"), NO_SHAPE),
    # --- programs ------------------------------------------------------------------------------------
    "Program.input(name)": (lambda f, v: bhemu.Program().input(v, ("M", "N"), "bf16"), [None, *NO_TEXT]),
    "Program.input(shape)": (
        lambda f, v: bhemu.Program().input("a", v, "bf16"),
        [None, "MN", 5, (), (1.5, 2), (0, 32), (-32, 32), (None, 2), (True, 2)],
    ),
    "Program.input(format)": (lambda f, v: bhemu.Program().input("a", ("M", "N"), v), NO_FORMAT),
    "Program.input(tile_shape)": (
        lambda f, v: bhemu.Program().input("a", ("M", "N"), "bf16", tile_shape=v),
        NO_TILE_SHAPE,
    ),
    "Program.input(address)": (
        lambda f, v: bhemu.Program().output("a", ("M", "N"), "bf16", address=v),
        [*NO_INTEGER[1:], *NEGATIVE],
    ),
    "Program.dimension(name)": (lambda f, v: bhemu.Program().dimension(v, 64), [None, *NO_TEXT]),
    "Program.dimension(default)": (lambda f, v: bhemu.Program().dimension("M", v), [*COUNT[:-1], 0]),
    "Program.parameter(name)": (lambda f, v: bhemu.Program().parameter(v, 1), [None, *NO_TEXT]),
    "Program.parameter(choices)": (lambda f, v: bhemu.Program().parameter("a", 1, choices=v), [None, 5, "ab"]),
    "Program.parameter(help)": (lambda f, v: bhemu.Program().parameter("a", 1, help=v), [None, 5]),
    "Program.unpack": (lambda f, v: bhemu.Program().unpack(v), [None, *NO_FUNCTION]),
    "Program.reference": (lambda f, v: bhemu.Program().reference(v), [None, *NO_FUNCTION]),
    "load_program": (lambda f, v: bhemu.load_program(v), [*NO_FILE, ".", "no such file"]),
    "run_program(program)": (lambda f, v: bhemu.run_program(v), [None, 5, "program.py"]),
    "run_program(inputs)": (lambda f, v: bhemu.run_program(f.declared, v), [5, [1], {"b": 1}, {5: 1}, {"a": "text"}]),
    "run_program(settings)": (
        lambda f, v: bhemu.run_program(f.declared, settings=v),
        [5, "M=64", {"M": 0}, {"M": -1}, {"M": 1.5}, {"M": "x"}, {"X": 1}, {5: 1}, {"M": None}, {"M": True}],
    ),
    "run_program(seed)": (lambda f, v: bhemu.run_program(f.declared, seed=v), COUNT[:-1]),
    "run_program(max_cycles)": (lambda f, v: bhemu.run_program(f.declared, max_cycles=v), [*COUNT[1:], 0]),
    "run_program(allow_open)": (lambda f, v: bhemu.run_program(f.declared, allow_open=v), NO_FLAG),
    "run_program(progress)": (lambda f, v: bhemu.run_program(f.declared, progress=v), NO_FUNCTION),
    # --- formats and numerics ------------------------------------------------------------------------
    "encode(array)": (lambda f, v: formats.encode(v, "bf16"), NO_ARRAY),
    "encode(format)": (lambda f, v: formats.encode(f.ones, v), NO_FORMAT),
    "encode(tile_shape)": (lambda f, v: formats.encode(f.ones, "bf16", tile_shape=v), NO_TILE_SHAPE),
    "encode(forced_exponent)": (
        lambda f, v: formats.encode(f.ones, "bfp8", forced_exponent=v),
        ["1", 1.5, True, -1, 256, [1]],
    ),
    "decode(data)": (lambda f, v: formats.decode(v, "bf16", (32, 32)), [None, 5, "text", b"", np.zeros(4)]),
    "decode(shape)": (lambda f, v: formats.decode(bytes(2048), "bf16", v), NO_SHAPE),
    "tensor_size(shape)": (lambda f, v: formats.tensor_size(v, "bf16"), NO_SHAPE[:-1]),
    "datum_index(row)": (lambda f, v: formats.datum_index(v, 0), [*COUNT, 32]),
    "mvmul(a)": (lambda f, v: numerics.mvmul(v, np.ones((16, 16))), ["text", None, [[1], [1, 2]], object(), [True]]),
    "mvmul(fidelity)": (lambda f, v: numerics.mvmul(np.ones((8, 16)), np.ones((16, 16)), fidelity=v), [None, 5, "Hi"]),
    "elwadd(dst_format)": (lambda f, v: numerics.elwadd(1.0, 1.0, dst_format=v), [5, "bf17", ["bf16"], 1.5]),
    "cast(dtype)": (lambda f, v: numerics.src_values([0], v), NO_FORMAT),
    "fma(a)": (lambda f, v: numerics.fma(v, 1.0, 1.0), ["text", None, [[1], [1, 2]], object(), True]),
}


@pytest.fixture(scope="module")
def given() -> SimpleNamespace:
    """What the calls are made on; a wrong call changes nothing, so all share it."""
    machine, started = bhemu.Machine(), bhemu.Machine()
    executable = program("loop: j loop")
    started.load(executable, "B")
    started.start()
    chip = bhemu.Chip("p100")
    declared = bhemu.Program("declared")
    declared.input("a", ("M", "N"), "bf16")
    declared.dimension("M", 32)
    declared.dimension("N", 32)
    for thread in (declared.unpack, declared.math, declared.pack):
        thread(lambda core: None)
    return SimpleNamespace(
        tile=bhemu.Tile(),
        machine=machine,
        started=started,
        chip=chip,
        snapshot=chip.snapshot(),
        program=executable,
        declared=declared,
        ones=np.ones((32, 32), np.float32),
    )


def test_there_are_more_than_300_wrong_calls() -> None:
    assert sum(len(values) for _, values in CALLS.values()) > 300


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_refused_with_a_remedy(given: SimpleNamespace, name: str) -> None:
    call, values = CALLS[name]
    found = []
    for value in values:
        try:
            call(given, value)
        except BhemuError as error:
            if not error.remedy:
                found.append(f"{value!r}: no remedy: {error}")
        except Exception as error:
            found.append(f"{value!r}: {type(error).__name__}: {error}")
        else:
            found.append(f"{value!r}: accepted")
    assert not found, "\n".join(found)


def test_a_wrong_call_changes_nothing_in_a_tile(given: SimpleNamespace) -> None:
    before = given.tile.snapshot()
    for name in (name for name in CALLS if name.startswith("Tile.")):
        test_wrong_arguments_are_refused_with_a_remedy(given, name)
    assert given.tile.snapshot() == before


# --- right ones ----------------------------------------------------------------------------------


def test_integers_of_numpy_are_integers(given: SimpleNamespace) -> None:
    one, two = np.int32(1), np.uint8(2)
    chip, tile = given.chip, bhemu.Tile()
    assert chip[one, two] is chip[1, 2] is chip.tile(one, two)
    assert chip.chosen((one, two)) == [chip[1, 2]]
    chip[one, two].write_word(np.int64(64), np.uint32(0x80000000))
    assert chip[1, 2].read_word(np.uint16(64)) == 0x80000000
    tile.execute(np.int64(0), np.uint32(0x02000000))
    tile.clock(np.uint8(3))
    assert tile.record.clock
    tile.config["THCON_SEC0_REG1_Out_data_format"] = np.uint8(5)
    assert tile.config["THCON_SEC0_REG1_Out_data_format"] == 5
    assert tile.read_tensor(np.int64(0), (np.int64(32), 32), "bf16").shape == (32, 32)


@pytest.mark.parametrize("size", [64, np.int64(64), "64"])
def test_settings_of_a_program_are_integers_or_their_text(given: SimpleNamespace, size: Any) -> None:
    bhemu.run_program(given.declared, settings={"M": size})
    assert given.declared.dimensions["M"] == 64


def test_path_objects_name_files(tmp_path: Path) -> None:
    with pytest.raises(BhemuError, match="no such file"):
        bhemu.load_elf(tmp_path / "missing.elf")
