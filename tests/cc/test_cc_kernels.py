"""Bare kernels: where they are linked, what the start-up code does, and what they return on bhemu's own cores."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bhemu import Tile
from bhemu.cc import CompileError, Toolchain, compile_kernel
from bhemu.cc.cores import CORES
from bhemu.loader.boot import guess_core
from bhemu.loader.elf import Executable, load_elf
from bhemu.machine.agents import CORE_NAMES
from tests.riscv.rv_machine import RESET_BIT, SOFT_RESET, START, release

Build = Callable[..., Any]
LOCAL_RAM = 0xFFB00000
LOCAL_SIZE = {"B": 0x2000, "NC": 0x2000, "T0": 0x1000, "T1": 0x1000, "T2": 0x1000}

EVERYTHING = """
    #include <bhemu.h>
    #include <string.h>
    static const char text[] = "constant";
    uint32_t data[3] = {11, 22, 33};
    uint32_t cleared[5];
    BHEMU_L1 uint32_t result = 0xAA55AA55;
    static uint32_t built;
    __attribute__((constructor)) static void construct(void) { built = data[1]; }
    int main(void) {
        uint32_t sum = 0;
        for (unsigned i = 0; i < 5; i++) sum |= cleared[i];
        result = built + sum + (uint32_t)strlen(text);
        data[2] = 44;
        return 1000 + BHEMU_CORE;
    }
"""


def run(elf: Executable, core: str, clocks: int = 20000) -> Tile:
    """Load an ELF file by its load addresses, let one core run it, and return the tile."""
    tile = Tile()
    view = tile.cores[core]
    view.local_ram[:] = 0xEE  # the start-up code must not count on zeros
    for segment in elf.segments:
        if segment.content:
            place = segment.load_address
            tile.l1[place : place + len(segment.content)] = np.frombuffer(segment.content, np.uint8)
    tile.cores.store(0xFFB12224, 0x155)  # local RAM keeps what it has (T16)
    release(tile, core)
    tile.clock(clocks)
    return tile


def local_word(tile: Tile, core: str, address: int) -> int:
    ram = tile.cores[core].local_ram
    return int(struct.unpack_from("<I", ram.tobytes(), address - LOCAL_RAM)[0])


@pytest.mark.parametrize("core", CORE_NAMES)
def test_a_kernel_starts_up_runs_and_halts_on_its_core(build: Build, core: str) -> None:
    _, elf = build(EVERYTHING, core=core)
    assert elf.entry == START[core] == elf.address_of("__bhemu_text_start")
    assert CORE_NAMES[guess_core(elf)] == core
    tile = run(elf, core)
    assert tile.cores[core].halt_reason == "ebreak"
    assert tile.cores[core].pc == elf.address_of("__bhemu_halt") + 4  # behind the ebreak
    assert local_word(tile, core, elf.address_of("__bhemu_exit_code")) == 1000 + CORE_NAMES.index(core)
    assert local_word(tile, core, elf.address_of("data") + 8) == 44
    place = elf.address_of("result")
    assert int(tile.record.l1_u32[place >> 2]) == 22 + 0 + len("constant")


@pytest.mark.parametrize("core", CORE_NAMES)
def test_segments_stand_where_the_core_has_memory(build: Build, core: str) -> None:
    _, elf = build(EVERYTHING, core=core)
    code, *others = elf.segments
    assert code.executable
    assert code.address == code.load_address == START[core]
    data = next(s for s in others if s.content and s.address == LOCAL_RAM)
    assert data.load_address == elf.address_of("__bhemu_data_load")
    assert struct.unpack_from("<3I", data.content, elf.address_of("data") - LOCAL_RAM) == (11, 22, 33)
    limit = START[core] + CORES[core].l1_length
    for segment in elf.segments:
        if segment.content:
            assert START[core] <= segment.load_address
            assert segment.load_address + len(segment.content) <= limit
    assert elf.address_of("__bhemu_stack_top") == LOCAL_RAM + LOCAL_SIZE[core]
    assert elf.address_of("__bhemu_bss_end") == elf.address_of("__bhemu_stack_bottom")
    assert elf.address_of("__bhemu_l1_end") <= limit
    assert START[core] < elf.address_of("result") < limit


def test_kernels_of_the_five_cores_fit_side_by_side() -> None:
    taken = sorted((core.reset_pc, core.reset_pc + core.l1_length) for core in CORES.values())
    assert all(end <= start for (_, end), (start, _) in pairwise(taken))
    assert {name: core.reset_pc for name, core in CORES.items()} == START
    assert RESET_BIT.keys() == CORES.keys()
    assert SOFT_RESET == 0xFFB121B0


def test_text_links_elsewhere(build: Build) -> None:
    kernel, elf = build(EVERYTHING, core="T2", text=0x40000)
    assert kernel.origin == elf.entry == 0x40000
    assert all(s.load_address >= 0x40000 for s in elf.segments if s.content)


def test_code_is_the_cores_instruction_set_with_debug_lines(build: Build, toolchain: Toolchain) -> None:
    kernel, elf = build("int main(void)\n{\n    return 3;\n}\n")
    assert elf.attributes is not None
    names = elf.attributes.split("_")
    assert names[0].startswith("rv32i")
    assert {name.rstrip("0123456789p") for name in names[1:]} >= {"m", "zba", "zbb", "zicsr"}
    header = kernel.path.read_bytes()[:52]
    assert struct.unpack_from("<I", header, 36)[0] & 1 == 0  # EF_RISCV_RVC
    line = elf.line_at(elf.address_of("main"))
    assert line is not None
    assert line.file.endswith("kernel.c")


def test_options_reach_the_compiler_behind_ours(build: Build) -> None:
    _, small = build("int f(int x) { return x * WIDE; }\nint main(void) { return f(3); }", options=["-DWIDE=5", "-O0"])
    assert small.address_of("f") is not None
    tile = run(small, "B")
    assert local_word(tile, "B", small.address_of("__bhemu_exit_code")) == 15


def test_sources_in_three_languages_make_one_kernel(cxx: Toolchain, tmp_path: Path) -> None:
    sources = {
        "start.c": "int twice(int); int main(void) { return twice(20); }",
        "twice.S": ".globl twice\ntwice: j cxx_twice\n",
        "cxx.cpp": """
            #include <algorithm>
            #include <array>
            #include <bhemu.h>
            #include <cstring>
            struct Table { std::array<int, 4> values{}; Table() { values.fill(1); } };
            static Table table;
            static_assert(TT_OP_NOP == 0x02000000);
            extern "C" int cxx_twice(int x) { return std::max(2 * x, 0) + table.values[3]; }
        """,
    }
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    kernel = compile_kernel([tmp_path / name for name in sources], tmp_path / "k.elf", core="T1")
    elf = load_elf(kernel.path)
    tile = run(elf, "T1")
    assert local_word(tile, "T1", elf.address_of("__bhemu_exit_code")) == 41


def test_objects_are_linked(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "part.c").write_text("int part(void) { return 9; }")
    (tmp_path / "main.c").write_text("int part(void); int main(void) { return part(); }")
    flags = ["-march=rv32im", "-mabi=ilp32", "-c", "-o"]
    subprocess.run([toolchain.gcc, *flags, tmp_path / "part.o", tmp_path / "part.c"], check=True)
    kernel = compile_kernel([tmp_path / "main.c", tmp_path / "part.o"], tmp_path / "k.elf")
    elf = load_elf(kernel.path)
    assert local_word(run(elf, "B"), "B", elf.address_of("__bhemu_exit_code")) == 9


def test_library_functions_and_division_of_long_numbers_link(build: Build) -> None:
    _, elf = build(
        """
        #include <stdint.h>
        #include <string.h>
        volatile uint64_t big = 1000000007ULL * 12345; volatile unsigned n = 5;
        char a[64], b[64];
        int main(void) { memset(a, 7, sizeof a); memcpy(b, a, n); return (int)(big / 12345 % 1000) + b[4]; }
        """
    )
    assert local_word(run(elf, "B"), "B", elf.address_of("__bhemu_exit_code")) == 7 + 7


def test_header_functions_reach_the_hardware(build: Build) -> None:
    _, elf = build(
        """
        #include <bhemu.h>
        BHEMU_L1 uint32_t seen[4];
        int main(void) {
            TTI_SEMINIT(15, 3, 1 << 2);
            bhemu_tensix_sync();
            bhemu_semaphore_post(2);
            seen[0] = bhemu_semaphore_value(2);
            bhemu_semaphore_get(2);
            bhemu_semaphore_get(2);
            seen[1] = bhemu_semaphore_value(2);
            TT_SETDMAREG(0, 0x1234 + seen[1], 0, 2 * 7);
            bhemu_tensix_sync();
            seen[2] = bhemu_gpr()[7] & 0xFFFF;
            uint64_t before = bhemu_wall_clock();
            bhemu_wait(100);
            seen[3] = bhemu_wall_clock() - before >= 100;
            return 0;
        }
        """,
        core="T1",
    )
    tile = run(elf, "T1")
    first = elf.address_of("seen") >> 2
    assert [int(word) for word in tile.record.l1_u32[first : first + 4]] == [4, 2, 0x1236, 1]


@pytest.mark.parametrize(
    ("statement", "core", "reason"),
    [
        ("TTI_NOP", "NC", "core NC cannot push"),
        ("TT_SETDMAREG(0, 1, 0, 2)", "NC", "core NC cannot push"),
        ("bhemu_semaphore_post(1)", "B", "bhemu_semaphore_post"),
        ("bhemu_push_to(1, 2)", "T0", "bhemu_push_to"),
        ("bhemu_mailbox_send(1, 2)", "NC", "bhemu_mailbox_send"),
    ],
)
def test_hardware_that_a_core_lacks_does_not_compile(build: Build, statement: str, core: str, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        build(f"#include <bhemu.h>\nint main(void) {{ {statement}; return 0; }}", core=core)
