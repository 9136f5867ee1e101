"""`bhemu run kernel.elf`: compiled programs on the cores of a tile, files into and out of its memory."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bhemu.cli.analysis import print_found
from bhemu.cli.memory import (
    Transfer,
    check_place,
    check_read,
    parse_read,
    parse_write,
    print_transfers,
    read,
    transfers_as_json,
    write,
)
from bhemu.cli.progress import Progress
from bhemu.cli.recording import Recording
from bhemu.cli.report import REFUSED, number, output, plain_table, print_issued, print_json, refuse_usage
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
    from bhemu.api.firmware import BootResult, FirmwareMachine
    from bhemu.api.machine import Machine
    from bhemu.api.summary import MachineResult

CORES = ("B", "T0", "T1", "T2", "NC")
ELF_MAGIC = b"\x7fELF"


@dataclass
class _Run:
    """A run in progress and what is known about it."""

    machine: Machine
    programs: dict[str, str]
    result: MachineResult | None = None
    boot: BootResult | None = None
    launch_clocks: int | None = None
    seconds: float = 0.0
    retired: int = 0
    """Instructions of the cores in the time that `seconds` measures."""


def is_elf_file(path: Path) -> bool:
    """There is a file that begins as ELF files do."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(ELF_MAGIC)) == ELF_MAGIC


def is_elf_argument(text: str) -> bool:
    """The argument of `bhemu run` names an ELF file, or a core and its ELF file, and not a Python program."""
    path = Path(text)
    if path.is_file():
        return path.suffix != ".py" and (path.suffix == ".elf" or is_elf_file(path))
    return path.suffix == ".elf" or "=" in text


def run_elf(options: RunOptions) -> None:
    """Run ELF files, bare or as kernels of a firmware; see `bhemu run --help`."""
    programs = _programs(options)
    kernels = _by_core(options.kernels, "--kernel")
    _check_usage(options, kernels)
    writes = [parse_write(text) for text in options.writes]
    reads = [parse_read(text) for text in options.reads]
    word = until_word(options.until_word) if options.until_word is not None else None

    from bhemu.cli.arrays import check_target, write_files

    targets = {transfer.option: check_target(transfer.file) for transfer in reads}
    dump = check_target(options.dump) if options.dump is not None else None
    trace = check_target(options.trace) if options.trace is not None else None
    single = [path for path in (dump, trace) if path is not None]
    if len({*targets.values(), *single}) < len(targets) + len(single):
        refuse_usage("two options write the same file", "give each --read, and --dump and --trace, a file of its own")
    recording = Recording(
        trace,
        show_profile=options.show_profile,
        show_timing=options.show_timing,
        check=options.check,
        suppressions=options.suppressions,
    )
    for transfer in reads:
        check_read(transfer)
    contents: dict[Path, Any] = {}
    with Progress(silent=options.quiet) as progress:
        if options.firmware is not None:
            run, going = _prepare_firmware(options, kernels)
        else:
            run, going = _prepare_bare(options, programs, word)
        recording.attach(run.machine)
        try:
            for transfer in writes:
                write(run.machine.tile, run.machine, transfer)
            for transfer in reads:
                check_place(run.machine.tile, run.machine, transfer)
            start = time.perf_counter()
            before = _retired(run.machine)
            going(progress)
            run.seconds = time.perf_counter() - start
            run.retired = _retired(run.machine) - before
            for transfer in reads:
                contents[targets[transfer.option]] = read(run.machine.tile, run.machine, transfer)
        finally:
            if dump is not None:
                from bhemu.api.dump import dump_state

                write_files({dump: dump_state(run.machine.tile)})
            write_files(recording.files())
    write_files(contents)
    found = recording.hazards()
    if options.as_json:
        report = _as_json(run, writes, reads, progress.compiled) | recording.as_json()
        print_json(report | ({"hazards": [one.as_json() for one in found]} if found is not None else {}))
    elif not options.quiet:
        _print(run, writes, reads, options, progress.compiled)
        recording.show()
    if found is not None and not options.as_json:
        print_found(found, error=options.quiet)
    _exit(run, options)
    if found is not None and any(one.is_certain for one in found):
        raise typer.Exit(REFUSED)


# --- the command line ---------------------------------------------------------------------------------------------


def _programs(options: RunOptions) -> dict[str | None, str]:
    """ELF files by core; None means the core that a single file without a name is for."""
    named = [text for text in options.programs if "=" in text and not Path(text).is_file()]
    plain = [text for text in options.programs if text not in named]
    if len(plain) > 1 or (plain and named):
        refuse_usage(
            "several programs need the names of their cores", "for example B=brisc.elf T0=unpack.elf T1=math.elf"
        )
    if named and options.core is not None:
        refuse_usage("--core is for one program without a name", "say CORE=FILE for each, and omit --core")
    if plain:
        return {core_of(options.core, "--core") if options.core is not None else None: plain[0]}
    result: dict[str | None, str] = {}
    result.update(_by_core(named, "the program"))
    return result


def core_of(name: str, what: str) -> str:
    """The name of a core in capitals; `what` names it in the message."""
    if name.upper() not in CORES:
        refuse_usage(f"{what} names core {name!r}, which does not exist", f"cores are {', '.join(CORES)}")
    return name.upper()


def _by_core(texts: list[str], what: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not path:
            refuse_usage(f"{what} {text!r} is not of the form CORE=FILE", "for example B=kernel.elf")
        core = core_of(name, what)
        if core in found:
            refuse_usage(f"core {core} is named twice", "give each core one file")
        found[core] = path
    return found


def _check_usage(options: RunOptions, kernels: dict[str, str]) -> None:
    if options.firmware is None:
        for given, option in ((kernels, "--kernel"), (options.layout, "--layout")):
            if given:
                refuse_usage(f"{option} is for --firmware", "name the firmware's directory with --firmware")
        if not options.programs:
            refuse_usage("no program is given", "name a Python program, an ELF file, or --firmware DIR")
    else:
        for value, option in (
            (options.programs, "a program"),
            (options.core, "--core"),
            (options.until, "--until"),
            (options.until_word, "--until-word"),
            (options.semihosting, "--semihosting"),
        ):
            if value:
                refuse_usage(
                    f"--firmware does not go with {option}",
                    "the firmware runs kernels (--kernel CORE=FILE) until they have returned",
                )
    if options.timed:
        for recorded, option in (
            (options.trace, "--trace"),
            (options.show_profile, "--profile"),
            (options.show_timing, "--timing"),
            (options.check, "--check"),
        ):
            if recorded:
                refuse_usage(f"--timed does not go with {option}", "record and time in separate runs")
    if options.until is not None and options.until_word is not None:
        refuse_usage("--until and --until-word exclude each other", "give one of them")


def until_word(text: str) -> tuple[str, int]:
    """Place and value of `--until-word`."""
    place, equals, value = text.partition("=")
    if not equals or not place or not value:
        refuse_usage(f"--until-word {text!r} is not of the form ADDR=VALUE", "for example --until-word 0x20000=1")
    return place, number(value, "value") & 0xFFFFFFFF


# --- running ------------------------------------------------------------------------------------------------------


def _retired(machine: Machine) -> int:
    return int(machine.tile.record.core_retired.sum())


def _prepare_bare(options: RunOptions, programs: dict[str | None, str], word: tuple[str, int] | None) -> Any:
    from bhemu.api.machine import DEFAULT_CLOCKS, Machine

    machine = Machine(allow_open=options.allow_open, timed=options.timed)
    loaded = {machine.load(path, core): path for core, path in programs.items()}
    run = _Run(machine, loaded)
    until: Any = options.until
    if until is not None:
        until = number(until, "address") if until[:1].isdigit() else machine.address_of(until)
    if word is not None:
        until = _word_condition(machine, *word)
    semihosting = new_semihosting(as_json=options.as_json) if options.semihosting else None
    machine.start()

    def going(progress: Progress) -> None:
        run.result = machine.run(
            max_clocks=options.max_clocks or DEFAULT_CLOCKS,
            until=until,
            semihosting=semihosting,
            progress=progress.clocks,
        )

    return run, going


def _word_condition(machine: Machine, place: str, value: int) -> Any:
    from bhemu.errors import MemoryError_
    from bhemu.machine.state import L1_SIZE

    address = number(place, "address") if place[:1].isdigit() else machine.address_of(place)
    if address % 4 or address >= L1_SIZE:
        raise MemoryError_(
            f"--until-word: {address:#x} is not a word of L1", remedy=f"use a multiple of 4 below {L1_SIZE:#x}"
        )
    words = machine.tile.record.l1_u32
    return lambda: bool(words[address >> 2] == value)


def _prepare_firmware(options: RunOptions, kernels: dict[str, str]) -> Any:
    from bhemu.api.firmware import FirmwareMachine, load_firmware
    from bhemu.api.machine import DEFAULT_CLOCKS, Machine

    assert options.firmware is not None
    firmware = load_firmware(options.firmware, layout_file=options.layout)
    system: FirmwareMachine = FirmwareMachine(firmware, Machine(allow_open=options.allow_open, timed=options.timed))
    named = {core: kernel_file(path) for core, path in kernels.items()}
    run = _Run(system.machine, {core: str(executable.path) for core, executable in firmware.executables.items()})

    def going(progress: Progress) -> None:
        limit = options.max_clocks or DEFAULT_CLOCKS
        run.boot = system.boot(max_clocks=limit, progress=progress.clocks)
        if named:
            run.launch_clocks = system.launch(named, max_clocks=limit, progress=progress.clocks)

    return run, going


def kernel_file(path: str) -> Any:
    """A kernel for the firmware: an ELF file, or the plain bytes of a `.bin` file."""
    source = Path(path)
    if source.suffix != ".bin":
        return source
    from bhemu.errors import ProgramError

    if not source.is_file():
        raise ProgramError(f"{source}: no such file", remedy="name the ELF file or the .bin file of a kernel")
    return source.read_bytes()


def _exit(run: _Run, options: RunOptions) -> None:
    """The exit status where the programs say one."""
    if run.result is None:
        return
    if run.result.status is not None:
        raise typer.Exit(run.result.status)
    condition = options.until or options.until_word
    if condition and run.result.reason == "done":
        typer.echo(f"bhemu: all cores ended, and {condition} never came", err=True)
        raise typer.Exit(REFUSED)
    failed = [core for core in run.result.cores if core.exit_code]
    if failed:
        if options.quiet:
            for core in failed:
                typer.echo(f"bhemu: main of core {core.name} returned {core.exit_code}", err=True)
        raise typer.Exit(REFUSED)


# --- the report ---------------------------------------------------------------------------------------------------


def _ending(run: _Run, options: RunOptions) -> str:
    if run.result is None:
        return ""
    if run.result.reason == "exit":
        return f"core B called exit({run.result.status})"
    if run.result.reason == "until":
        return f"reached {options.until}" if options.until else f"{options.until_word} came true"
    return ""


def _as_json(run: _Run, writes: list[Transfer], reads: list[Transfer], compiled: list[str]) -> dict[str, Any]:
    from bhemu.programs.run import instructions_by_unit

    result = run.result
    report: dict[str, Any] = {
        "programs": run.programs,
        **transfers_as_json(writes, reads),
        "cores": [vars(core) for core in (result.cores if result is not None else run.machine.summary())],
        "instructions": instructions_by_unit(run.machine.tile.record.issued),
        **speed_as_json(run.retired, run.seconds, compiled, run.machine.tile.record.open_used),
    }
    if result is not None:
        report |= {"clocks": result.clocks, "ended": result.reason, "status": result.status}
    if run.machine.tile.time is not None:
        timed = run.machine.tile.time.report()
        report |= {"timed": asdict(timed) | {"guessed_share": timed.guessed_share}}
    if run.boot is not None:
        report |= {"boot": vars(run.boot), "launch_clocks": run.launch_clocks}
    return report


def _print(run: _Run, writes: list[Transfer], reads: list[Transfer], options: RunOptions, compiled: list[str]) -> None:
    console = output()
    summary = run.result.cores if run.result is not None else run.machine.summary()
    cores = plain_table("core", "program", "instructions", "state", "at", right=("instructions",))
    for core in summary:
        state = state_of(core)
        cores.add_row(core.name, run.programs.get(core.name, ""), f"{core.retired:,}", state, core.place)
    console.print(cores, markup=False)
    print_transfers(console, writes, reads)
    print_issued(console, run.machine.tile.record.issued)
    if run.boot is not None:
        console.print(f"booted in {run.boot.done:,} clocks, cores released after {run.boot.released:,}")
        if run.launch_clocks is not None:
            console.print(f"kernels returned after {run.launch_clocks:,} clocks")
    ending = _ending(run, options)
    if ending:
        console.print(ending, markup=False)
    clocks = run.result.clocks if run.result is not None else None
    print_speed(console, clocks, run.retired, run.seconds, compiled)
    if run.machine.tile.time is not None:
        print_guessed(console, run.machine.tile.time.report().guessed_share)
    print_open_choices(console, run.machine.tile.record.open_used)
