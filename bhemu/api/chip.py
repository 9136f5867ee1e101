"""A whole Blackhole from Python: tiles, DRAM, clocks, programs on many tiles, snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

import bhemu.checks as checks
from bhemu.analysis.check_tile import parse_kinds
from bhemu.analysis.hazard import KINDS
from bhemu.analysis.suppressions import Suppressions
from bhemu.api.checked import CheckedRecording
from bhemu.api.chip_firmware import ChipFirmware
from bhemu.api.chip_memory import DramBank, InterleavedDram, dram_places
from bhemu.api.chip_report import ChipResult, explain_tiles
from bhemu.api.chip_run import ChipRun
from bhemu.api.chip_snapshot import ChipSnapshot
from bhemu.api.chip_tile import ChipTile, Tiles
from bhemu.api.ethernet_tile import EthernetTile
from bhemu.api.firmware import BOOT_CLOCKS
from bhemu.api.machine import DEFAULT_CLOCKS
from bhemu.api.semihosting import Semihosting
from bhemu.checks import checked
from bhemu.chip.clock.clocks import QUANTUM
from bhemu.chip.coordinates import ETHERNET_PLACES, TENSIX_COLUMNS, TENSIX_ROWS, Harvesting, Place
from bhemu.chip.device import Device
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.errors import BhemuError, ConfigurationError, ProgramError, UndefinedBehavior
from bhemu.ethernet.boot import ALONE, Identity
from bhemu.loader import boot
from bhemu.loader.elf import Executable, load_elf
from bhemu.loader.firmware_files import Firmware, load_firmware
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.core_state import IN_RESET
from bhemu.recording.circular_buffers import CircularBuffer
from bhemu.timed import ChipTime, ensure_no_quantum

BOARDS: Final = {
    "p100": Harvesting(columns=(12, 13), dram=7, ethernet=tuple(range(14))),
    "p150": Harvesting(ethernet=(6, 9)),
}
"""Products (tile N3). Which columns, channel and Ethernet tiles are off differs from card to card."""

MAX_THREADS: Final = 140
"""As many as there are Tensix tiles."""

File = Executable | str | Path
Programs = File | Mapping[str, File]


class Chip:
    """A Blackhole chip: Tensix tiles, NoC, DRAM, and what its host reaches by PCI.

    Example:
        >>> import bhemu
        >>> chip = bhemu.Chip("p150")
        >>> len(chip.tensix), len(chip.dram), chip[1, 2]
        (140, 8, <tile 1-2: B in reset, T0 in reset, T1 in reset, T2 in reset, NC in reset>)
        >>> chip.dram[0].write(0x1000, b"hello")
        >>> chip.dram[0].read(0x1000, 5)
        b'hello'

    Attributes:
        device: the host's view of the chip: PCI memory and configuration space.
        tensix: the Tensix tiles that the product has, row by row.
        ethernet: the Ethernet tiles that it has, by channel.
        dram: the DRAM banks that it has.
        interleaved: all of them as one memory, page by page.
    """

    @checked
    def __init__(
        self,
        board: str = "p150",
        *,
        harvesting: Harvesting | None = None,
        allow_open: bool = False,
        threads: int = 1,
        quantum: int = QUANTUM,
        simulator_order: bool = False,
        host: HostMemory | None = None,
        identity: Identity = ALONE,
        timed: bool = False,
    ) -> None:
        """
        Args:
            board: `p150` (140 Tensix tiles, 8 DRAM banks) or `p100` (120 and 7).
            harvesting: what the chip does not have, in place of a product's.
            allow_open: use the recommended choice where no source settles what silicon does, instead of refusing.
            threads: of the host, that tiles run on; results are the same for any number.
            quantum: clocks that tiles which leave each other alone may run ahead of each other, at most; 1: none. A
                timed chip has its own rule.
            simulator_order: queue the coprocessors' words, and translate coordinates of NoC requests, as the official
                simulator does.
            host: memory of the host, for accesses of the chip to it; without it they are refused.
            identity: what the chip says about itself in telemetry.
            timed: a clock is an estimate of a cycle of silicon, and NoC requests take time (docs/time.md).

        Raises:
            ConfigurationError: there is no such board, the harvesting makes no sense, or `timed` comes with a quantum.
        """
        if harvesting is None:
            if checks.text(board, "board") not in BOARDS:
                raise ConfigurationError(
                    f"board {board!r} is not known", remedy=f"use one of {', '.join(BOARDS)}, or give its harvesting"
                )
            harvesting = BOARDS[board]
        self.device = Device(
            checks.instance(harvesting, "harvesting", Harvesting),
            allow_open=checks.flag(allow_open, "allow_open"),
            threads=checks.integer(threads, "threads", 1, MAX_THREADS, error=ConfigurationError),
            quantum=checks.integer(quantum, "quantum", 1, checks.MAX_CLOCKS, error=ConfigurationError),
            simulator_order=checks.flag(simulator_order, "simulator_order"),
            host=checks.optional(host, checks.instance, "host", HostMemory),
            identity=checks.instance(identity, "identity", Identity),
        )
        self._harvesting = harvesting
        if timed:
            ensure_no_quantum(quantum)
        self.timing: ChipTime | None = ChipTime(self.device) if checks.flag(timed, "timed") else None
        """What the cycles of a timed chip are made of: `chip.timing.report()`; None in functional mode."""
        self._make_views()

    def _make_views(self) -> None:
        """Tiles and memory of the device for Python."""
        harvesting = self._harvesting
        self._exposed: set[int] = set()
        self._is_up_to_date = False
        self._recordings: list[CheckedRecording] = []
        columns = TENSIX_COLUMNS[: len(TENSIX_COLUMNS) - len(set(harvesting.columns))]
        self.tensix = tuple(ChipTile(self.device, (x, y), self._exposed.add) for y in TENSIX_ROWS for x in columns)
        self._by_place = {tile.place: tile for tile in self.tensix}
        self._by_node = {tile.node.place: tile for tile in self.tensix}
        self.ethernet = tuple(
            EthernetTile(self.device, place, channel, self._exposed.add)
            for channel, place in enumerate(ETHERNET_PLACES)
            if place in self.device.translation
        )
        self.dram = tuple(self._banks(harvesting))
        self.interleaved = InterleavedDram(self.dram)

    def _banks(self, harvesting: Harvesting) -> Iterable[DramBank]:
        for place in dram_places():
            bank = DramBank(self.device, place)
            if bank.node.index != harvesting.dram:
                yield bank

    # --- tiles ------------------------------------------------------------------------------------------------------

    def tile(self, x: int, y: int) -> ChipTile:
        """The Tensix tile at translated coordinates.

        Raises:
            UndefinedBehavior: there is none.
        """
        return self[x, y]

    def __getitem__(self, place: Place) -> ChipTile:
        """The Tensix tile at translated coordinates (x, y); see `tile`."""
        place = checks.place(place)
        if place not in self._by_place:
            last = self.tensix[-1].place if self.tensix else (0, 0)
            raise UndefinedBehavior(
                f"{place[0]}-{place[1]} is not a Tensix tile of this chip",
                remedy=f"its tiles have x 1 to 7 and 10 to {last[0]}, y 2 to {last[1]}",
            )
        return self._by_place[place]

    def chosen(self, tiles: Tiles | None) -> list[ChipTile]:
        """The tiles that an argument `tiles` names: one, its coordinates, or several; None names all."""
        if tiles is None:
            return list(self.tensix)
        if isinstance(tiles, ChipTile):
            return [self[tiles.place]]
        found = checks.items(tiles, "tiles")
        if len(found) == 2 and isinstance(found[0], (int, np.integer)):
            return [self[found[0], found[1]]]  # type: ignore[index]
        places = [item.place if isinstance(item, ChipTile) else checks.place(item, "a tile") for item in found]
        return [self[place] for place in dict.fromkeys(places)]

    # --- programs ---------------------------------------------------------------------------------------------------

    @checked
    def load(self, programs: Programs, core: str | None = None, *, tiles: Tiles | None = None) -> tuple[str, ...]:
        """Put programs into memory of tiles, in place of earlier ones of the same cores; these are held in reset.

        Args:
            programs: an ELF file, or files by core.
            core: of a single file: B, T0, T1, T2 or NC; None takes the core that the file is for.
            tiles: a tile, its coordinates, or several; None: all.

        Returns:
            The names of the cores.

        Raises:
            ProgramError: a file cannot be run.
            MemoryError_: it does not fit into memory, or overlaps the program of another core. Nothing was loaded.
        """
        named = programs.items() if isinstance(programs, Mapping) else [(core, programs)]
        placements = []
        for name, file in named:
            executable = file if isinstance(file, Executable) else load_elf(file)
            number = boot.guess_core(executable) if name is None else boot.core_number(name)
            placements.append(boot.place(executable, number))
        chosen = self.chosen(tiles)
        for tile in chosen:
            tile.programs.check(placements)
        for tile in chosen:
            tile.programs.put(placements)
        return tuple(CORE_NAMES[placement.core] for placement in placements)

    @checked
    def hold(self, *cores: str, tiles: Tiles | None = None) -> None:
        """Put cores of tiles into reset; without names, all cores."""
        for tile in self.chosen(tiles):
            tile.programs.hold(*cores)

    @checked
    def start(self, *cores: str, tiles: Tiles | None = None) -> None:
        """Release cores from reset, on all tiles in the same clock.

        Args:
            cores: their names; by default all that have a program.
            tiles: a tile, its coordinates, or several; None: all that have a program.

        Raises:
            ProgramError: a core has no program.
        """
        chosen = self.chosen(tiles)
        if tiles is None:
            chosen = [tile for tile in chosen if tile.programs.programs]
            if not chosen:
                raise ProgramError("no tile has a program", remedy="load one first")
        for tile in chosen:
            tile.programs.check_start(*cores)
        for tile in chosen:
            tile.programs.start(*cores)

    @checked
    def boot_firmware(
        self,
        firmware: Firmware | str | Path,
        *,
        tiles: Tiles | None = None,
        max_clocks: int = BOOT_CLOCKS,
        progress: Callable[[int], Any] | None = None,
    ) -> ChipFirmware:
        """Boot tt-metal firmware on tiles, side by side, as a host does (tile B6): cores are reset, and L1 is written.

        Args:
            firmware: from `load_firmware`, or its directory, as the `ttnn` wheel has them in tt_metal/pre-compiled.
            tiles: a tile, its coordinates, or several; None: all.
            max_clocks: stop after this many clocks.
            progress: called now and then with the clocks that have passed.

        Returns:
            What launches kernels.

        Raises:
            ProgramError: a file is missing or damaged, or the set is for another chip.
            BhemuError: what the firmware did was refused, it waits forever, or takes longer than `max_clocks`.
        """
        files = firmware if isinstance(firmware, Firmware) else load_firmware(firmware)
        system = ChipFirmware(self, files, tiles)
        system.boot(max_clocks, progress)
        return system

    # --- time -------------------------------------------------------------------------------------------------------

    @property
    def time(self) -> int:
        """Clocks that have passed."""
        return self.device.time

    @property
    def open_choices(self) -> list[int]:
        """Fault codes of the open cases in which a tile used the recommended choice."""
        return self.device.open_choices

    def clock(self, clocks: int = 1) -> None:
        """Let clocks of the chip pass.

        Raises:
            BhemuError: an instruction was refused. Its core halts, the chip can go on.
        """
        self.pass_clocks(checks.integer(clocks, "clocks", 0, checks.MAX_CLOCKS))
        self.touch_exposed()

    @checked
    def pass_clocks(self, clocks: int) -> None:
        """The same as `clock`, but that tiles in which nothing proceeds keep the time at which they stopped."""
        self.prepare()
        try:
            while clocks > 0:
                step = self.next_step(clocks)
                self.device.clock(step)
                clocks -= step
                self.arrive()
        except BhemuError as error:
            self.locate(error)
            raise

    def prepare(self) -> None:
        """Before clocks pass: tiles whose arrays the host holds may have changed."""
        if not self._is_up_to_date:
            self.touch_exposed()
        self._is_up_to_date = False

    @checked
    def next_step(self, clocks: int) -> int:
        """So many of these clocks can pass until a recording begins or ends."""
        return min((recording.next_step(clocks) for recording in self._recordings), default=clocks)

    def arrive(self) -> None:
        """After a step: recordings begin and end where they are to."""
        if self._recordings:
            for recording in self._recordings:
                recording.arrive()
            self._recordings = [recording for recording in self._recordings if not recording.is_over]

    @checked
    def record(
        self,
        *,
        tiles: Tiles | None = None,
        start: int | None = None,
        stop: int | None = None,
        instructions: bool = True,
        counters: bool = False,
        watch: Iterable[int] = (),
        states: bool = False,
        states_every: int | None = None,
        check: str | Iterable[str] = KINDS,
        suppressions: str | Path | None = None,
        buffers: Iterable[CircularBuffer] = (),
    ) -> CheckedRecording:
        """Record what tiles execute, whenever the chip's clock moves; other tiles run as before.

        Args:
            tiles: a tile, its coordinates, or several; None: all.
            start: clock of the chip from which on they are recorded; None: from now on.
            stop: clock in which the recording ends; None: when its `stop` is called.
            instructions: keep a row for each instruction of a core, as traces need them. Without, there are profiles,
                waits and the words of the coprocessor.
            counters: only count: instructions by place, rounds of waits, words by opcode. That costs least.
            watch: addresses of words of L1, at most 16: each change in one of the tiles is noted, with who has made it.
            states: keep Dst, SrcA, SrcB and the tiles in L1 that were unpacked and packed last, at each part's end.
            states_every: keep them every so many clocks, too, of tiles where they have changed.
            check: what the recording's `hazards` looks for: some of order, l1, noc, cb, also as `"order,noc"`.
            suppressions: a TOML file with hazards that it leaves out.
            buffers: circular buffers of the programs, for the check; those of tt-metal's programs are found.

        Returns:
            The recording; `bhemu report` shows what its `save` has written, its `hazards` lists hazards.

        Raises:
            ConfigurationError: a tile is recorded already, the times or watched words make no sense, or more than
                counters is wanted with `counters`.
            UndefinedBehavior: the chip has no such tile.
        """
        chosen = self.chosen(tiles)
        kinds = parse_kinds(check if isinstance(check, str) else ",".join(check))
        hidden = Suppressions.read(Path(suppressions)) if suppressions is not None else None
        recording = CheckedRecording(
            self.device,
            {tile.place: tile.node.index for tile in chosen},
            start=checks.optional(start, checks.integer, "start", 0, checks.MAX_CLOCKS),
            stop=checks.optional(stop, checks.integer, "stop", 0, checks.MAX_CLOCKS),
            instructions=checks.flag(instructions, "instructions"),
            counters=checks.flag(counters, "counters"),
            watch=tuple(checks.integer(address, "a watched address") for address in checks.items(watch, "watch")),
            states=checks.flag(states, "states"),
            states_every=checks.optional(states_every, checks.integer, "states_every", 1, checks.MAX_CLOCKS),
            names={tile.place: tile.programs.executable_at for tile in chosen},
            buffers=buffers,
        )
        recording.kinds, recording.suppressions = kinds, hidden
        self._recordings.append(recording)
        return recording

    @checked
    def locate(self, error: BhemuError) -> None:
        """Add to the error of a tile's instruction the source line, and the tile's name where it has two."""
        tile = self._by_node.get(error.tile) if error.tile is not None else None
        if tile is not None:
            tile.programs.locate(error)
            if tile.place != tile.node.place:
                error.message += f"\n  in translated coordinates the tile is {tile.place[0]}-{tile.place[1]}"

    def touch_exposed(self) -> None:
        """Tiles whose arrays the host holds may change at any time: they are brought to the chip's time."""
        for index in self._exposed:
            self.device.touch(index)
        self._is_up_to_date = True

    def run(
        self,
        *,
        tiles: Tiles | None = None,
        max_clocks: int = DEFAULT_CLOCKS,
        until: Callable[[], bool] | None = None,
        semihosting: Callable[[ChipTile], Semihosting] | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> ChipResult:
        """Let the chip run until all cores of the named tiles are done, or until a condition is true.

        A core is done when it has halted (ebreak) or spins in a loop that reads nothing, such as `j .`.

        Args:
            tiles: a tile, its coordinates, or several; None: all that have a core out of reset.
            max_clocks: stop after this many clocks.
            until: end the run when this function returns True, and not before; it is called every 32 clocks, in long
                runs every 4,096.
            semihosting: makes what serves `ecall` of core B of a tile; a tile whose program has called `exit` is done.
            progress: called now and then with the clocks that have passed.

        Raises:
            BhemuError: an instruction was refused: category, tile, core, pc, symbol and line say which.
            Deadlock: no core or thread on the chip can proceed, and at least one waits.
            CycleLimit: not done within `max_clocks`.
        """
        max_clocks = checks.integer(max_clocks, "max_clocks", 1, checks.MAX_CLOCKS)
        for name, called in (("until", until), ("semihosting", semihosting), ("progress", progress)):
            checks.optional(called, checks.function, name)
        chosen = self.running() if tiles is None else self.chosen(tiles)
        services = None if semihosting is None else {tile.place: semihosting(tile) for tile in chosen}
        run = ChipRun(self, chosen, services)
        return run.result(run.go(max_clocks, until, progress))

    def running(self) -> list[ChipTile]:
        """The tiles that have a core out of reset."""
        tiles = self.device.tiles
        return [tile for tile in self.tensix if (tiles["core_state"][tile.node.index] != IN_RESET).any()]

    def explain(self) -> str:
        """Who does what or waits for what on tiles with a core out of reset; tiles that do the same only once."""
        return explain_tiles(self.running(), ethernet=[tile for tile in self.ethernet if tile.is_running])

    # --- copies -----------------------------------------------------------------------------------------------------

    def snapshot(self) -> ChipSnapshot:
        """A copy of everything that the chip holds: tiles, DRAM, PCIe, ARC and Ethernet tiles, windows, time."""
        self.refuse_copy()
        return ChipSnapshot(self.device.snapshot(), self.programs())

    def programs(self) -> dict[Place, list[boot.Placement]]:
        """What has been loaded, by tile."""
        return {tile.place: tile.programs.placements for tile in self.tensix if tile.has_programs}

    def restore(self, snapshot: ChipSnapshot) -> None:
        """Put the chip back into a snapshot's state; it continues from there as it did the first time.

        Programs that were loaded since are forgotten. Whether the chip uses recommended choices (`allow_open`), its
        threads and its quantum stay its own.

        Raises:
            ConfigurationError: the copy is of another product, or of another version of bhemu.
        """
        self.refuse_copy()
        self.device.restore(checks.instance(snapshot, "snapshot", ChipSnapshot).state)
        for tile in self.tensix:
            placements = snapshot.programs.get(tile.place, [])
            if placements or tile.has_programs:
                tile.programs.placements = placements
        self._is_up_to_date = False

    def __getstate__(self) -> tuple[Device, Harvesting, dict[Place, list[boot.Placement]]]:
        """What `copy` and `pickle` take: the device and the programs. Functions of its `host` must be picklable."""
        self.refuse_copy()
        return self.device, self._harvesting, self.programs()

    @property
    def is_quiet(self) -> bool:
        """Nothing is on its way over the NoC; in functional mode nothing ever is, between two clocks."""
        return self.timing is None or self.timing.is_quiet

    def refuse_copy(self) -> None:
        """Refuse to copy a timed chip: a copy would lack what is on its way over the NoC, and what pipelines hold.

        Raises:
            ConfigurationError: the chip is timed.
        """
        if self.timing is not None:
            raise ConfigurationError("a timed chip cannot be copied", remedy="copy a chip that is not timed")

    def __setstate__(self, state: tuple[Device, Harvesting, dict[Place, list[boot.Placement]]]) -> None:
        self.device, self._harvesting, programs = state
        self.timing = None
        self._make_views()
        for place, placements in programs.items():
            self[place].programs.placements = placements

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the tiles with matplotlib, each in the colour of how many instructions its cores have executed.

        Returns:
            The axes.

        Raises:
            ConfigurationError: matplotlib is not installed.
        """
        from bhemu.pictures.plot import grid

        return grid(self._retired(), "instructions of the cores", ax=ax)

    def _retired(self) -> dict[Place, int]:
        counts = self.device.tiles["core_retired"].sum(axis=1)
        return {tile.place: int(counts[tile.node.index]) for tile in self.tensix}

    def _repr_html_(self) -> str:
        from bhemu.api.html import chip_html

        states = {tile.place: self.device.tiles["core_state"][tile.node.index] for tile in self.tensix}
        return chip_html(repr(self)[1:-1], states, self._retired())

    def __repr__(self) -> str:
        return f"<Chip: {len(self.tensix)} Tensix tiles, {len(self.dram)} DRAM banks, {self.time:,} clocks>"
