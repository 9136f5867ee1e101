"""`bhemu run --tile x,y kernel.elf`: compiled programs on tiles of a chip."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bhemu.cli.memory import (
    Transfer,
    check_place,
    check_read,
    content_of,
    decoded,
    parse_read,
    parse_write,
    print_transfers,
    read,
    transfers_as_json,
    write,
)
from bhemu.cli.progress import Progress
from bhemu.cli.report import REFUSED, number, output, plain_table, print_issued, print_json, refuse_usage
from bhemu.cli.run_elf import core_of, until_word
from bhemu.cli.run_options import RunOptions
from bhemu.cli.run_report import (
    new_semihosting,
    print_guessed,
    print_open_choices,
    print_speed,
    speed_as_json,
    state_of,
)

if TYPE_CHECKING:
    from bhemu.api.chip import Chip
    from bhemu.api.chip_report import ChipResult
    from bhemu.api.chip_tile import ChipTile

Place = tuple[int, int]

_TILES = re.compile(r"(\d+),(\d+)(?:-(\d+),(\d+))?")
_PREFIX = re.compile(r"(?:(\d+),(\d+)|dram(\d+))/(.+)", re.DOTALL)
_NAMED: int = 3
"""At most this many tiles that did the same are named in the report."""


@dataclass(frozen=True)
class _Run:
    """A run that has ended.

    Attributes:
        chip: on which it was.
        programs: files by tile and core.
        result: how it ended.
        retired: instructions of the cores.
        seconds: that it took.
        compiled: names of functions that were compiled first.
    """

    chip: Chip
    programs: dict[Place, dict[str, str]]
    result: ChipResult
    retired: int
    seconds: float
    compiled: list[str]


def names_tiles(options: RunOptions) -> bool:
    """The command line names tiles of a chip."""
    return bool(options.tiles or options.board) or any(map(is_on_tile, options.programs))


def is_on_tile(text: str) -> bool:
    """A program of a command line is for a named tile: `1,2/B=reader.elf`."""
    found = _PREFIX.fullmatch(text)
    return found is not None and found[3] is None and not Path(text).is_file()


def tiles_of(chip: Chip, texts: list[str]) -> list[ChipTile]:
    """The tiles that `--tile` names, each once."""
    found: dict[Place, ChipTile] = {}
    for text in texts:
        match = _TILES.fullmatch(text.replace(" ", ""))
        if text == "all":
            found |= {tile.place: tile for tile in chip.tensix}
        elif match is None:
            refuse_usage(f"--tile {text!r} does not name tiles", "say 1,2 or 1,2-4,5 or all")
        elif match[3] is None:
            place = int(match[1]), int(match[2])
            found[place] = chip[place]
        else:
            (left, right), (top, bottom) = (sorted((int(match[i]), int(match[i + 2]))) for i in (1, 2))
            inside = [t for t in chip.tensix if left <= t.place[0] <= right and top <= t.place[1] <= bottom]
            if not inside:
                refuse_usage(f"--tile {text}: the rectangle has no Tensix tile", "tiles have x 1 to 16, y 2 to 11")
            found |= {tile.place: tile for tile in inside}
    return list(found.values())


def load_on_chip(chip: Chip, texts: list[str], tiles: list[str], core: str | None) -> dict[Place, dict[str, str]]:
    """Load the programs of a command line, `[X,Y/][CORE=]FILE`, and say which tile got which."""
    chosen = tiles_of(chip, tiles)
    loaded: dict[Place, dict[str, str]] = {}
    for text in texts:
        found = _PREFIX.fullmatch(text) if is_on_tile(text) else None
        rest = text if found is None else found[4]
        targets = chosen if found is None else [chip[int(found[1]), int(found[2])]]
        if not targets:
            refuse_usage(f"{text!r} does not say on which tile it is to run", f"say --tile 1,2, or 1,2/{text}")
        name, equals, file = rest.partition("=")
        if equals and not Path(rest).is_file():
            name = core_of(name, f"the program {text!r}")
        else:
            name, file = "" if core is None else core_of(core, "--core"), rest
        for tile in targets:
            got = tile.programs.load(file, name or None)
            if got in loaded.setdefault(tile.place, {}):
                refuse_usage(f"core {got} of tile {_name(tile.place)} has two programs", "give each core one file")
            loaded[tile.place][got] = file
    if not loaded:
        refuse_usage("no program is given", "name ELF files: --tile 1,2 kernel.elf, or 1,2/B=kernel.elf")
    idle = [tile.place for tile in chosen if tile.place not in loaded]
    if idle:
        refuse_usage(f"--tile {idle[0][0]},{idle[0][1]} has no program", "name one without X,Y/, or omit the tile")
    return loaded


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


def run_on_chip(options: RunOptions) -> None:
    """Run ELF files on tiles of a chip; see `bhemu run --help`."""
    _check_usage(options)
    writes, reads = [parse_write(text) for text in options.writes], [parse_read(text) for text in options.reads]
    word = until_word(options.until_word) if options.until_word is not None else None

    from bhemu.cli.arrays import check_target, write_files

    targets = {transfer.option: check_target(transfer.file) for transfer in reads}
    if len(set(targets.values())) < len(targets):
        refuse_usage("two options write the same file", "give each --read a file of its own")
    for transfer in reads:
        check_read(transfer)
    with Progress(silent=options.quiet) as progress:
        from bhemu.api.chip import Chip
        from bhemu.api.machine import DEFAULT_CLOCKS

        chip = Chip(options.board or "p150", allow_open=options.allow_open, timed=options.timed)
        programs = load_on_chip(chip, options.programs, options.tiles, options.core)
        places = list(programs)
        for transfer in writes:
            _put(chip, places, transfer)
        getters = {targets[transfer.option]: _getter(chip, places, transfer) for transfer in reads}
        until = _condition(chip, places, *word) if word is not None else None
        chip.start(tiles=places)
        before, start = int(chip.device.tiles["core_retired"].sum()), time.perf_counter()
        result = chip.run(
            tiles=places,
            max_clocks=options.max_clocks or DEFAULT_CLOCKS,
            until=until,
            semihosting=(lambda _: new_semihosting(as_json=options.as_json)) if options.semihosting else None,
            progress=progress.clocks,
        )
        seconds = time.perf_counter() - start
        retired = int(chip.device.tiles["core_retired"].sum()) - before
        run = _Run(chip, programs, result, retired, seconds, progress.compiled)
        contents = {path: get() for path, get in getters.items()}
    write_files(contents)
    if options.as_json:
        print_json(_as_json(run, writes, reads))
    elif not options.quiet:
        _print(run, writes, reads)
    _exit(result, options)


def _check_usage(options: RunOptions) -> None:
    alternatives = (
        (options.firmware, "--firmware", "boot firmware on a chip with bhemu.Chip().boot_firmware in Python"),
        (options.kernels, "--kernel", "kernels are for --firmware, which runs on one tile"),
        (options.layout, "--layout", "it is for --firmware, which runs on one tile"),
        (options.until, "--until", "end the run with --until-word X,Y/ADDR=VALUE, or debug it with bhemu debug"),
        (options.dump, "--dump", "save the whole chip in Python: chip.snapshot().save(file)"),
        (options.trace, "--trace", "record a run of one tile, without --tile"),
        (options.show_profile, "--profile", "record a run of one tile, without --tile"),
        (options.show_timing, "--timing", "record a run of one tile, without --tile"),
        (options.check, "--check", "check a run of one tile, without --tile, or use Chip.record(check=...)"),
    )
    for value, option, remedy in alternatives:
        if value:
            refuse_usage(f"{option} is for a run of one tile without a chip", remedy)
    if len(options.programs) > 1 and options.core is not None:
        refuse_usage("--core is for one program without a name", "say CORE=FILE for each, and omit --core")


# --- memory -------------------------------------------------------------------------------------------------------


def _split(chip: Chip, places: list[Place], transfer: Transfer, *, several: bool) -> tuple[list[Any], Transfer]:
    """The tiles or the DRAM bank that a transfer is about, and the transfer without their names."""
    found = _PREFIX.fullmatch(transfer.place)
    if found is None:
        if len(places) > 1 and not several:
            refuse_usage(
                f"{transfer.option} does not say of which tile",
                f"say {_comma(places[0])}/{transfer.place}, for example",
            )
        return [chip[place] for place in places], transfer
    inner = replace(transfer, place=found[4])
    if found[3] is None:
        return [chip[int(found[1]), int(found[2])]], inner
    bank = int(found[3])
    if bank >= len(chip.dram):
        refuse_usage(
            f"{transfer.option}: the chip has no DRAM bank {bank}", f"banks are dram0 to dram{len(chip.dram) - 1}"
        )
    return [chip.dram[bank]], inner


def _comma(place: Place) -> str:
    return f"{place[0]},{place[1]}"


def _put(chip: Chip, places: list[Place], transfer: Transfer) -> None:
    from bhemu.api.chip_memory import DramBank

    owners, inner = _split(chip, places, transfer, several=True)
    for owner in owners:
        if isinstance(owner, DramBank):
            owner.write(number(inner.place, "address"), content_of(inner).tobytes())
        else:
            write(owner, owner.programs, inner)


def _getter(chip: Chip, places: list[Place], transfer: Transfer) -> Callable[[], Any]:
    """What fetches the content of a `--read` after the run; a place that does not exist is refused here."""
    import numpy as np

    from bhemu.api.chip_memory import DramBank

    (owner,), inner = _split(chip, places, transfer, several=False)
    if isinstance(owner, DramBank):
        bank, address, size = owner, number(inner.place, "address"), check_read(inner)
        bank.read(address, size)
        return lambda: decoded(inner, np.frombuffer(bank.read(address, size), np.uint8))
    check_place(owner, owner.programs, inner)
    return lambda: read(owner, owner.programs, inner)


def _condition(chip: Chip, places: list[Place], place: str, value: int) -> Callable[[], bool]:
    """`--until-word [X,Y/]ADDR=VALUE`."""
    what = Transfer(f"--until-word {place}", place, Path(), None, None, None)
    (owner,), inner = _split(chip, places, what, several=False)
    numeric = inner.place[:1].isdigit()
    address = number(inner.place, "address") if numeric else owner.programs.address_of(inner.place)
    found = owner.read(address, 4)  # refuses what is not there
    assert len(found) == 4
    return lambda: int.from_bytes(owner.read(address, 4), "little") == value


# --- the report ---------------------------------------------------------------------------------------------------


def _exit(result: ChipResult, options: RunOptions) -> None:
    failed = [(place, core) for place, tile in result.tiles.items() for core in tile.cores if core.exit_code]
    if options.until_word is not None and result.reason == "done":
        typer.echo(f"bhemu: all cores ended, and {options.until_word} never came", err=True)
        raise typer.Exit(REFUSED)
    status = max((tile.status or 0 for tile in result.tiles.values()), default=0)
    if status:
        raise typer.Exit(status)
    if failed:
        if options.quiet:
            for place, core in failed:
                typer.echo(
                    f"bhemu: main of core {core.name} of tile {_name(place)} returned {core.exit_code}", err=True
                )
        raise typer.Exit(REFUSED)


def _as_json(run: _Run, writes: list[Transfer], reads: list[Transfer]) -> dict[str, Any]:
    from bhemu.programs.run import instructions_by_unit

    return {
        "tiles": {
            _name(place): {
                "programs": run.programs[place],
                "clocks": tile.clocks,
                "status": tile.status,
                "cores": [vars(core) for core in tile.cores],
                "instructions": instructions_by_unit(run.chip[place].state["issued"]),
            }
            for place, tile in run.result.tiles.items()
        },
        **transfers_as_json(writes, reads),
        **speed_as_json(run.retired, run.seconds, run.compiled, run.chip.open_choices),
        "clocks": run.result.clocks,
        "ended": run.result.reason,
        **_timed(run.chip),
    }


def _timed(chip: Chip) -> dict[str, Any]:
    """What a timed run was made of; nothing of one that was not."""
    if chip.timing is None:
        return {}
    found = chip.timing.report()
    tiles = {_name(place): asdict(tile) | {"guessed_share": tile.guessed_share} for place, tile in found.tiles.items()}
    noc = {name: getattr(found, name) for name in ("requests", "bytes", "waited", "at_once")}
    return {"timed": {"tiles": tiles, **noc, "guessed_share": found.guessed_share}}


def _print(run: _Run, writes: list[Transfer], reads: list[Transfer]) -> None:
    console = output()
    alike: dict[tuple[str, str, str, str], list[tuple[Place, int]]] = {}
    for place, tile in run.result.tiles.items():
        for core in tile.cores:
            key = (core.name, run.programs[place].get(core.name, ""), state_of(core), core.place)
            alike.setdefault(key, []).append((place, core.retired))
    table = plain_table("tile", "core", "program", "instructions", "state", "at", right=("instructions",))
    for (name, program, state, at), cores in alike.items():
        named = len(cores) <= _NAMED
        tiles = ", ".join(_name(place) for place, _ in cores) if named else f"{len(cores)} tiles"
        table.add_row(tiles, name, program, f"{sum(count for _, count in cores):,}", state, at)
    console.print(table, markup=False)
    print_transfers(console, writes, reads)
    print_issued(console, run.chip.device.tiles["issued"].sum(axis=0))
    if run.result.reason == "until":
        console.print("the word has its value")
    print_speed(console, run.result.clocks, run.retired, run.seconds, run.compiled)
    if run.chip.timing is not None:
        print_guessed(console, run.chip.timing.report().guessed_share)
    print_open_choices(console, run.chip.open_choices)
