"""C text of what the runtime knows of the machine: constants, offsets in the records, functions, tables, the image."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np

from bhemu.capi.attach import NAMING
from bhemu.capi.c_text import c_numbers, c_string
from bhemu.capi.image import IN_CHIP, IN_CHIP_TIME, IN_EACH_CHIP, IN_EACH_TILE, IN_TILE_TIME, Machine
from bhemu.capi.objects import Parts
from bhemu.chip.clock.clocks import WORTH_SHARE, WORTH_THREADS
from bhemu.chip.clock.tiles import ATTENDED, STATUS
from bhemu.chip.coordinates import ETHERNET_TILES, HEIGHT, TENSIX_TILES, TILES, WIDTH, X_LSB, Y_MASK, Kind
from bhemu.chip.links.send import FRAME
from bhemu.chip.nodes.kinds import DRAM, DRAM_CHANNEL, ETHERNET, TENSIX
from bhemu.chip.nodes.state import PAGE, PAGES
from bhemu.chip.pcie.direct import UNKNOWN
from bhemu.chip.pcie.pci import BAR0, BAR4, BAR4_SIZE, DEVICE_STRIDE
from bhemu.chip.pcie.windows import (
    COORDINATE,
    ENTRY_BYTES,
    FIRST_LARGE,
    LARGE_BITS,
    NOT_UNICAST,
    SMALL_BITS,
    SMALL_WINDOWS_END,
    WINDOW_CONFIG,
    WINDOW_CONFIG_END,
    WINDOWS,
)
from bhemu.chip.state import CHIP
from bhemu.cluster.failures import DOWN_TEXT, LOST_TEXT, RETRAINS_TEXT, UP_TEXT
from bhemu.cluster.state import CLUSTER
from bhemu.cluster.topology import topology_table
from bhemu.counting import chip as counted_chip
from bhemu.counting import layout as counted
from bhemu.counting.launches import jump_word
from bhemu.errors import BhemuError
from bhemu.isa import niu
from bhemu.isa.memory_map import ETHERNET_L1
from bhemu.loader.boot import SOFT_RESET
from bhemu.loader.firmware_layout import read_layouts
from bhemu.machine.agents import CORE_NAMES, ETHERNET_CORES
from bhemu.machine.compiler import Objects
from bhemu.machine.core_state import HALTED, IN_RESET, RUNNING
from bhemu.machine.dispatch import CODE_CACHE, PLACES
from bhemu.machine.ethernet_state import TENSIX_TILE
from bhemu.machine.linked import COUNT, TABLE
from bhemu.machine.state import FIRMWARE_PAGES, L1_SIZE, TILE, offset_of
from bhemu.recording.chip_recording import CLIENT_STEP, COUNTED_SECONDS, FLUSH_SHARE
from bhemu.riscv.decode import CODE
from bhemu.riscv.translation_state import (
    CLIENT_FIRST_ROUND,
    CLIENT_HOT,
    CLIENT_LEAST_ROUNDS,
    FIRST_CODE,
    HOT,
    LEAST_ROUNDS,
    MEMORY_BYTES,
)
from bhemu.tensix.frontend.run import OBSERVER_FULL
from bhemu.tile.observer import ENTRY
from bhemu.timed import layout as timed
from bhemu.timed import net_layout

CATEGORIES: Final = {
    "UndefinedBehavior": "UndefinedBehavior",
    "NonContractualBehavior": "NonContractualBehavior",
    "Unimplemented": "UnimplementedFunctionality",
    "Unsupported": "UnsupportedFunctionality",
    "MissingSpecification": "MissingSpecification",
    "ConfigurationError": "ConfigurationError",
    "MemoryError": "UndefinedBehavior",
}
"""The interface's names for bhemu's categories; another error is a mistake in bhemu, an AssertionFailure."""

_CHIP_FIELDS: Final = (
    "address",
    "tiles",
    "zeros",
    "links",
    "latency",
    "frame_first",
    "sent_first",
    "time",
    "quantum",
    "run_ahead",
    "named",
    "last_message",
    "active_count",
    "active",
    "unmade",
    "make_tile",
    "status",
    "observer",
    "touched",
    "window_words",
    "window_kind",
    "window_index",
    "window_base",
    "local",
    "current",
    "noc_end",
    "host_read",
    "host_write",
    "page",
    "fault_code",
    "fault_value",
    "threads",
    "share_begin",
    "share_stop",
    "share_alone",
    "share_leaves",
    "share_late",
)
_TILE_FIELDS: Final = (
    "tile_kind",
    "handlers",
    "simulator_order",
    "allow_open",
    "src_fresh",
    "open_used",
    "core_state",
    "tensix_state",
    "l1",
    "fault_code",
    "fault_value",
    "fault_core",
    "fault_pc",
    "fault_word",
    "fault_thread",
    "issued",
    "niu_counter",
)
_CLUSTER_FIELDS: Final = (
    *("address", "count", "chip", "time", "span"),
    *("threads", "share_begin", "share_stop", "share_alone", "share_leaves", "share_late"),
)
_CODE_FIELDS: Final = (
    "native",
    "memory",
    "memory_bytes",
    "memory_used",
    "protect",
    "hot",
    "least_rounds",
    "first_round",
    "entry_count",
)
_FUNCTIONS: Final = {
    "chip_clock": 2,
    "chip_clock_timed": 3,
    "advance_timed": 2,
    "advance_counted": 2,
    "take_counters": 3,
    "look_counted": 2,
    "begin_counted": 2,
    "cut_counted": 3,
    "join_counted": 3,
    "chip_help": 2,
    "cluster_clock": 2,
    "cluster_help": 2,
    "cluster_clock_timed": 2,
    "cluster_help_timed": 2,
    "chip_find": 3,
    "host_read": 3,
    "host_write": 3,
    "config_read": 2,
    "config_write": 2,
    "translate": 2,
}
"""Entries that the runtime calls, and their integers behind the record."""
TOPOLOGY: Final = "bhemu_topology"
"""Symbol of the description of the chips, as JSON, in the library."""
PROCESSOR_FEATURES: Final = {
    "sse4.2": (1, 2, 20, 0),
    "popcnt": (1, 2, 23, 0),
    "avx": (1, 2, 28, 256),
    "fma": (1, 2, 12, 256),
    "avx2": (7, 1, 5, 256),
    "bmi": (7, 1, 3, 0),
    "bmi2": (7, 1, 8, 0),
    "avx512f": (7, 1, 16, 512),
    "avx512dq": (7, 1, 17, 512),
    "avx512ifma": (7, 1, 21, 512),
    "avx512cd": (7, 1, 28, 512),
    "avx512bw": (7, 1, 30, 512),
    "avx512vl": (7, 1, 31, 512),
    "avx512vbmi": (7, 2, 1, 512),
    "avx512vbmi2": (7, 2, 6, 512),
    "avx512vnni": (7, 2, 11, 512),
    "avx512bitalg": (7, 2, 12, 512),
    "avx512vpopcntdq": (7, 2, 14, 512),
}
"""(leaf of CPUID, word of its answer, bit, width of the vectors that the system keeps); others come with these."""
_LEVELS: Final = {
    "x86-64": (),
    "x86-64-v2": ("sse4.2", "popcnt"),
    "x86-64-v3": ("avx", "avx2", "fma", "bmi", "bmi2"),
    "x86-64-v4": ("avx2", "fma", "bmi", "bmi2", "avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512cd"),
}
BASELINES: Final = tuple(name for name in _LEVELS if name != "x86-64-v2")
"""What a library can be made for beside the machine's own processor."""


def _type(dtype: np.dtype[Any]) -> str:
    kind = {"i": "int", "u": "uint"}[dtype.base.kind]
    return f"{kind}{8 * dtype.base.itemsize}_t"


def _offsets(record: np.dtype[Any], prefix: str, names: tuple[str, ...]) -> list[str]:
    lines = []
    for name in names:
        lines.append(f"#define {prefix}_{name.upper()} {offset_of(record, name)}")
        lines.append(f"#define {prefix}_{name.upper()}_TYPE {_type(record[name])}")
    return lines


def _symbols(objects: Objects) -> dict[str, str]:
    """Symbols by the names of entries."""
    return {key.rpartition("-")[0]: symbol for key, (symbol, _) in objects.items()}


def header(parts: Parts, version: str) -> str:
    """`machine.h`."""
    assert parts.machine is not None
    symbols = _symbols(parts.objects)
    numbers = {
        "TILES": TILES,
        "TENSIX_TILES": TENSIX_TILES,
        "X_LSB": X_LSB,
        "Y_MASK": Y_MASK,
        "CHIPS": len(parts.machine.topology.chips),
        "CHANNELS": ETHERNET_TILES,
        "CHIP_LINK_FAULTS": offset_of(CHIP, "fault"),
        "FRAME_AFTER": offset_of(FRAME, "after"),
        "TILE_BYTES": TILE.itemsize,
        "CHIP_BYTES": CHIP.itemsize,
        "CLUSTER_BYTES": CLUSTER.itemsize,
        "CODE_BYTES": CODE.itemsize,
        "CODE_FIRST": FIRST_CODE,
        "TRANSLATED_BYTES": MEMORY_BYTES,
        "TRANSLATED_FROM": HOT,
        "COUNTED_FROM": LEAST_ROUNDS,
        "TRANSLATED_LATE_FROM": CLIENT_HOT,
        "COUNTED_LATE_FROM": CLIENT_LEAST_ROUNDS,
        "FIRST_COUNTED_LATE": CLIENT_FIRST_ROUND,
        "ZEROS_BYTES": PAGE,
        "CHIP_PAGES": int(CHIP["page"].shape[0] * CHIP["page"].shape[1]),
        "TILE_OPEN_CHOICES": int(TILE["open_used"].shape[0]),
        "CORES": len(CORE_NAMES),
        "TILE_KINDS": 2,
        "CORE_RUNNING": RUNNING,
        "CORE_IN_RESET": IN_RESET,
        "CORE_HALTED": HALTED,
        "DRAM_PAGES": PAGES,
        "SHOWS_UNKNOWN": UNKNOWN,
        "SHOWS_TENSIX": TENSIX,
        "SHOWS_DRAM": DRAM,
        "SHOWS_ETHERNET": ETHERNET,
        "NO_WINDOW": 0xFFFFFFFF,
        "WINDOWS": WINDOWS,
        "FIRST_LARGE": FIRST_LARGE,
        "SMALL_BITS": SMALL_BITS,
        "LARGE_BITS": LARGE_BITS,
        "COORDINATE": COORDINATE,
        "COORDINATE_BITS": COORDINATE.bit_length(),
        "MEMORY_PLACES": parts.machine.shows.shape[0],
        "PLACES": PLACES,
        "CODE_CACHE": CODE_CACHE,
        "IN_CHIP": IN_CHIP,
        "IN_CHIP_TIME": IN_CHIP_TIME,
        "IN_TILE_TIME": IN_TILE_TIME,
        "IN_EACH_TILE": IN_EACH_TILE,
        "IN_EACH_CHIP": IN_EACH_CHIP,
        "WORTH_THREADS": WORTH_THREADS,
        "WORTH_SHARE": WORTH_SHARE,
        "OBSERVER_ENTRY": ENTRY,
        "OBSERVER_FULL": OBSERVER_FULL,
        "STATUS": STATUS,
        "ATTENDED": ATTENDED,
        "COUNTED_WORDS": counted.SIZE,
        "COUNTED_MOST": counted.MOST,
        "COUNTED_PIECES": counted.PIECES,
        "COUNTED_GAP": counted.GAP,
        "RECORDED_STEP": CLIENT_STEP,
        "COUNTED_SECONDS": int(COUNTED_SECONDS),
        "COUNTED_SHARE": FLUSH_SHARE,
        "NAMING": len(NAMING),
        "FOLLOWED_COUNT": counted_chip.COUNT,
        "FOLLOWED_JUMP": counted_chip.JUMP,
        "FOLLOWED_LAYOUT": counted_chip.LAYOUT,
        "FOLLOWED_LAYOUTS": counted_chip.LAYOUTS,
        "FOLLOWED_FIRST_LAYOUT": counted_chip.FIRST_LAYOUT,
        "FOLLOWED_LAYOUT_COLUMNS": counted_chip.LAYOUT_COLUMNS,
        "FOLLOWED_FIRST": counted_chip.FIRST_TILE,
        "FOLLOWED_INDEX": counted_chip.INDEX,
        "FOLLOWED_HAPPENED": counted_chip.HAPPENED,
        "FOLLOWED_COLUMNS": counted_chip.TILE_COLUMNS,
        "BEGUN": counted_chip.BEGUN,
        "ENDED": counted_chip.ENDED,
        "LAYOUTS": len(read_layouts()),
        "TILE_TIME_WORDS": timed.SIZE,
        "TILE_TIME_BUSY": timed.BUSY_CYCLES,
        "TILE_TIME_GUESSED": timed.GUESSED_CYCLES,
        "TILE_TIME_CORES": timed.CORE_CYCLES,
        "TILE_TIME_CORES_GUESSED": timed.CORE_GUESSED,
        "CHIP_TIME_WORDS": net_layout.SIZE,
        "CHIP_TIME_ADDRESS": net_layout.ADDRESS,
        "CHIP_TIME_DATA": net_layout.DATA,
        "CHIP_TIME_DATA_BYTES": net_layout.BLOCKS * net_layout.BLOCK_BYTES,
        "TENSIX_TILE": TENSIX_TILE,
        "ISSUED": int(np.prod(TILE["issued"].shape)),
        "NOCS": int(TILE["niu_counter"].shape[0]),
        "NIU_COUNTERS": int(TILE["niu_counter"].shape[1]),
        "NIU_WRITES": niu.WRITES_STARTED,
        "NIU_POSTED_WRITES": niu.POSTED_WRITES_STARTED,
        "NIU_ATOMICS": niu.ATOMICS_STARTED,
        "NIU_POSTED_ATOMICS": niu.POSTED_ATOMICS_SENT,
    }
    lines = ["/* Made by bhemu/capi/machine_text.py. */", "#ifndef BHEMU_MACHINE_H", "#define BHEMU_MACHINE_H"]
    lines += ["#include <stddef.h>", "#include <stdint.h>"]
    lines += [f"#define {name} {value}" for name, value in numbers.items()]
    addresses = {
        "DEVICE_STRIDE": DEVICE_STRIDE,
        "L1_BYTES": L1_SIZE,
        "ETHERNET_L1_BYTES": ETHERNET_L1,
        "DRAM_BYTES": DRAM_CHANNEL,
        "BAR0": BAR0,
        "BAR4": BAR4,
        "BAR4_SIZE": BAR4_SIZE,
        "SMALL_WINDOWS_END": SMALL_WINDOWS_END,
        "WINDOW_CONFIG": WINDOW_CONFIG,
        "WINDOW_CONFIG_END": WINDOW_CONFIG_END,
        "ENTRY_BYTES": ENTRY_BYTES,
        "NOT_UNICAST": NOT_UNICAST,
        "SOFT_RESET": SOFT_RESET,
    }
    lines += [f"#define {name} INT64_C({address})" for name, address in addresses.items()]
    texts = {"UP": UP_TEXT, "DOWN": DOWN_TEXT, "RETRAINS": RETRAINS_TEXT, "LOST": LOST_TEXT}
    lines += [f"#define LINK_{name}_TEXT {c_string(text.format('%lld'))}" for name, text in texts.items()]
    lines.append(f"#define TILE_FIRMWARE_PAGES {', '.join(map(str, FIRMWARE_PAGES))}")
    lines += [f"#define LAYOUT {c_string(parts.machine.layout)}", f"#define VERSION {c_string(version)}"]
    lines += _offsets(CHIP, "CHIP", _CHIP_FIELDS) + _offsets(TILE, "TILE", _TILE_FIELDS)
    lines += _offsets(CHIP["fault"], "LINK", ("down", "cut", "until", "lost"))
    lines += _offsets(CLUSTER, "CLUSTER", _CLUSTER_FIELDS) + _offsets(CODE, "CODE", _CODE_FIELDS)
    for name, arguments in _FUNCTIONS.items():
        taken = ", ".join(["void *", *["int64_t"] * arguments])
        lines.append(f"int64_t {name}({taken}) __asm__({c_string(symbols[name])});")
    lines += [
        "struct run { int32_t chip, tile; uint32_t at, size; };",
        "extern const struct run image_runs[]; /* one of size 0 ends them */",
        "extern const unsigned char image_content[];",
        "extern void *const machine_handlers[PLACES];",
        "extern const char machine_texts[]; /* offsets: pointers would have to be relocated in each process */",
        "struct fault { int64_t code; uint32_t name, category, text, remedy, rule; /* in machine_texts */ };",
        "extern const struct fault machine_faults[]; /* one without a name ends them */",
        f"extern const char machine_nodes[{WIDTH}][{HEIGHT}][{_KIND_BYTES}];",
        "extern const unsigned char machine_places[TILES][2];",
        "struct recorded { int32_t x, y, index; };",
        f"enum {{ RECORDED = {len(parts.machine.recorded)} }};",
        "extern const struct recorded machine_recorded[RECORDED]; /* Tensix tiles, by translated coordinates */",
        "extern const char *const machine_naming[NAMING]; /* environment variables, `NAMING` of attach.py */",
        "struct firmware { int64_t jump, index, signal, pointer, mailboxes, mailboxes_end, end; };",
        "extern const struct firmware machine_firmware[LAYOUTS]; /* loader/firmware_layout.py */",
        "struct link { const char *name; int32_t chip[2], channel[2]; };",
        "extern const struct link machine_links[]; /* one without a name ends them */",
        "extern const char *const machine_cores[TILE_KINDS][CORES]; /* by `tile_kind` */",
        f"extern const unsigned char machine_shows[{parts.machine.shows.shape[0]}][{parts.machine.shows.shape[1]}];",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _entries(parts: Parts) -> list[str]:
    """The functions, the table for Python, and the table of handlers."""
    names = {key: f"e{number}" for number, key in enumerate(sorted(parts.objects))}
    lines = [f"extern char {name}[] __asm__({c_string(parts.objects[key][0])});" for key, name in names.items()]
    lines += [
        '#define EXPORT __attribute__((visibility("default")))',
        f"EXPORT const int64_t {COUNT} = {len(names)};",
        f"EXPORT const struct {{ const char *name; void *address; }} {TABLE}[] = {{",
        *(f"    {{{c_string(key)}, {name}}}," for key, name in names.items()),
        "};",
        "void *const machine_handlers[PLACES] = {",
        *(f"    [{place}] = {names[key]}," for place, key in sorted(parts.places.items())),
        "};",
    ]
    return lines


def _image(machine: Machine) -> list[str]:
    content = b"".join(run.content for run in machine.image)
    return [
        "const struct run image_runs[] = {",
        *(f"    {{{run.chip}, {run.tile}, {run.at}, {len(run.content)}}}," for run in machine.image),
        "    {0, 0, 0, 0},",
        "};",
        f"const unsigned char image_content[] = {{\n    {c_numbers(content)}\n}};",
    ]


_KIND_BYTES: Final = 1 + max(len(kind.value) for kind in Kind)
"""Of the longest name of a kind of node."""


def _category(error: type[BhemuError]) -> str:
    return CATEGORIES.get(error("").category, "AssertionFailure")


def _tables(machine: Machine) -> list[str]:
    starts: dict[str, int] = {"": 0}
    size = 1
    lines = ["const struct fault machine_faults[] = {"]
    for code, fault in sorted(machine.faults.items()):
        texts = (fault.name, _category(fault.error), fault.text, fault.remedy, fault.rule)
        for text in texts:
            if text not in starts:
                starts[text] = size
                size += len(text.encode()) + 1
        lines.append(f"    {{{code}, {', '.join(str(starts[text]) for text in texts)}}},")
    lines += ["    {0}};", "const char machine_texts[] =", *(f'    {c_string(text)} "\\0"' for text in starts), "    ;"]
    lines.append(f"const char machine_nodes[{WIDTH}][{HEIGHT}][{_KIND_BYTES}] = {{")
    lines += [f"    [{x}][{y}] = {c_string(kind)}," for (x, y), kind in machine.nodes.items()]
    lines += ["};", "const unsigned char machine_places[TILES][2] = {"]
    lines += [f"    {{{x}, {y}}}," for x, y in machine.tiles]
    lines += ["};", "const struct recorded machine_recorded[RECORDED] = {"]
    lines += [f"    {{{x}, {y}, {index}}}," for (x, y), index in machine.recorded.items()]
    lines += ["};", "const char *const machine_naming[NAMING] = {", *(f"    {c_string(name)}," for name in NAMING)]
    lines += ["};", "const struct firmware machine_firmware[LAYOUTS] = {"]
    for layout in read_layouts():
        signal, boxes = layout.go_messages + layout.go_signal, layout.mailboxes
        places = (layout.go_index, signal, layout.launch_read_pointer, boxes.start, boxes.stop, layout.first_free)
        lines.append(f"    {{{jump_word(layout.entry['B'])}, {', '.join(map(str, places))}}},")
    lines += ["};", "const struct link machine_links[] = {"]
    for (a, b), numbers in machine.links.items():
        lines.append(f"    {{{c_string(f'{a} - {b}')}, {{{a.chip}, {b.chip}}}, {{{numbers[0]}, {numbers[1]}}}}},")
    lines.append("    {NULL, {0, 0}, {0, 0}},")
    lines += ["};", "const char *const machine_cores[TILE_KINDS][CORES] = {"]
    for names in (dict(enumerate(CORE_NAMES)), ETHERNET_CORES):
        lines.append(f"    {{{', '.join(c_string(names.get(core, '')) for core in range(len(CORE_NAMES)))}}},")
    lines.append("};")
    width, height = machine.shows.shape
    lines.append(f"const unsigned char machine_shows[{width}][{height}] = {{")
    return [*lines, *(f"    {{{', '.join(map(str, row))}}}," for row in machine.shows.tolist()), "};"]


def _features(processor: str | None, machine: Machine) -> tuple[str, ...]:
    """Features that the machine code may use, of those that can be asked for."""
    if processor is not None:
        return _LEVELS[processor]
    has = str(machine.toolchain[6]).split(",")
    return tuple(name for name in PROCESSOR_FEATURES if f"+{name}" in has)


def _processor(processor: str | None, machine: Machine) -> list[str]:
    rows = [
        f"    {{{', '.join([c_string(name), *map(str, PROCESSOR_FEATURES[name])])}}},"
        for name in _features(processor, machine)
    ]
    return ["const struct feature machine_features[] = {", *rows, "    {0}};"]


def source(parts: Parts, processor: str | None) -> str:
    """`machine.c`: tables for machine.h and for Python."""
    assert parts.machine is not None
    return "\n".join(
        [
            "/* Made by bhemu/capi/machine_text.py. */",
            '#include "machine.h"',
            '#include "processor.h"',
            *_entries(parts),
            f"EXPORT const char {TOPOLOGY}[] = {c_string(json.dumps(topology_table(parts.machine.topology)))};",
            *_image(parts.machine),
            *_tables(parts.machine),
            *_processor(processor, parts.machine),
            "",
        ]
    )
