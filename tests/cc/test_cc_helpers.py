"""The helpers of <bhemu.h> for NoC, mailboxes, circular buffers and semaphores, each by a program on a chip."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import bhemu
from bhemu.cc import Toolchain, compile_kernel
from bhemu.machine.agents import CORE_NAMES

Put = Callable[..., Path]


@pytest.fixture(scope="module")
def chip() -> bhemu.Chip:
    return bhemu.Chip("p150")


@pytest.fixture
def kernel(toolchain: Toolchain, tmp_path: Path) -> Put:
    """`kernel(text, "B")`: the ELF file of a program whose `main` has this text, with `declarations` before it."""

    def build(text: str, core: str = "B", declarations: str = "") -> Path:
        source = tmp_path / f"{core}{len(list(tmp_path.iterdir()))}.c"
        body = textwrap.indent(textwrap.dedent(text), "    ")
        source.write_text(f"#include <bhemu.h>\n{declarations}\nint main(void) {{\n{body}\n    return 0;\n}}\n")
        return compile_kernel([source], source.with_suffix(".elf"), core=core, options=["-Werror"]).path

    return build


def run(chip: bhemu.Chip, programs: dict[tuple[int, int], dict[str, Path]]) -> None:
    """Let the cores of tiles run these programs to their ends."""
    for tile in chip.tensix:
        tile.programs.hold()
    for place, files in programs.items():
        chip.load(files, tiles=place)
    for place, files in programs.items():
        chip.start(*files, tiles=place)
    result = chip.run(tiles=list(programs), max_clocks=500_000)
    assert result.reason == "done"
    assert all(core.exit_code == 0 for tile in result.tiles.values() for core in tile.cores)


def pattern(size: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8).tobytes()


@pytest.mark.parametrize("noc", [0, 1])
def test_read_and_write_move_more_than_one_packet(chip: bhemu.Chip, kernel: Put, noc: int) -> None:
    content = pattern(40_000, noc)
    chip[3, 4].write(0x40000, content)
    copy = f"""
        bhemu_noc_read({noc}, BHEMU_PLACE(3, 4), 0x40000, (void *)0x50000, 40000);
        bhemu_noc_barrier({noc});
        bhemu_noc_write({noc}, BHEMU_PLACE(5, 6), 0x60000, (void *)0x50000, 40000);
        bhemu_noc_barrier({noc});
    """
    run(chip, {(1, 2): {"B": kernel(copy)}})
    assert chip[5, 6].read(0x60000, 40_000) == content


@pytest.mark.parametrize("core", CORE_NAMES)
def test_every_core_reaches_dram(chip: bhemu.Chip, kernel: Put, core: str) -> None:
    content = pattern(2048, 7)
    chip.dram[2].write(0x10000, content)
    x, y = chip.dram[2].place
    copy = f"""
        bhemu_noc_read(0, BHEMU_PLACE({x}, {y}), 0x10000, (void *)0x50000, 2048);
        bhemu_noc_barrier(0);
        bhemu_noc_write(1, BHEMU_PLACE({x}, {y}), 0x20000, (void *)0x50000, 2048);
        bhemu_noc_barrier(1);
    """
    run(chip, {(2, 2): {core: kernel(copy, core)}})
    assert chip.dram[2].read(0x20000, 2048) == content


def test_write_register_reaches_a_register_of_another_tile(chip: bhemu.Chip, kernel: Put) -> None:
    write = """
        bhemu_noc_write_register(0, BHEMU_PLACE(6, 5), BHEMU_OVERLAY + 0x3010, 0x123456);
        bhemu_noc_barrier(0);
    """
    run(chip, {(1, 2): {"B": kernel(write)}})
    assert chip[6, 5].read_word(0xFFB40000 + 0x3010) == 0x123456


@pytest.mark.parametrize("noc", [0, 1])
def test_multicast_reaches_each_tile_of_the_rectangle_and_waits_for_them(
    chip: bhemu.Chip, kernel: Put, noc: int
) -> None:
    """The rectangle 5-3 to 11-5 crosses columns that are not Tensix tiles; the sender is in it."""
    content = pattern(64, 10 + noc)
    chip[6, 4].write(0x50000, content)
    inside = [tile for tile in chip.tensix if 5 <= tile.place[0] <= 11 and 3 <= tile.place[1] <= 5]
    for tile in chip.tensix:
        tile.write(0x51000, bytes(64))
    send = f"""
        for (unsigned i = 0; i < 2; i++) {{
            bhemu_noc_multicast({noc}, BHEMU_PLACE(5, 3), BHEMU_PLACE(11, 5), 0x51000, (void *)0x50000, 64,
                                {len(inside) - 1});
        }}
    """
    run(chip, {(6, 4): {"NC": kernel(send, "NC")}})
    got = {tile.place for tile in chip.tensix if tile.read(0x51000, 64) == content}
    assert got == {tile.place for tile in inside} - {(6, 4)}


def test_fetch_add_of_many_tiles_gives_each_another_number(chip: bhemu.Chip, kernel: Put) -> None:
    places = [(x, 7) for x in range(1, 8)]
    chip[1, 3].write(0x50000, bytes(16))
    count = "*(volatile uint32_t *)0x52000 = bhemu_noc_fetch_add(0, BHEMU_PLACE(1, 3), 0x50008, 3);"
    program = kernel(count)
    run(chip, {place: {"B": program} for place in places})
    assert sorted(chip[place].read_word(0x52000) for place in places) == list(range(0, 21, 3))
    assert chip[1, 3].read_word(0x50008) == 21


def test_l1_semaphore_says_that_data_have_arrived(chip: bhemu.Chip, kernel: Put) -> None:
    """Two senders write, then count the receiver's semaphore up; the receiver adds up what it has got."""
    receive = """
        bhemu_l1_semaphore_wait(&ready, 2);
        *(volatile uint32_t *)0x53000 = *(volatile uint32_t *)0x52000 + *(volatile uint32_t *)0x52010;
        bhemu_l1_semaphore_set(&ready, 0);
    """
    receiver = kernel(receive, "B", "BHEMU_L1 bhemu_l1_semaphore ready;")
    semaphore = bhemu.load_elf(receiver).address_of("ready")
    programs = {(1, 2): {"B": receiver}}
    for number, place in enumerate([(4, 9), (12, 10)]):
        send = f"""
            *(volatile uint32_t *)0x50000 = {100 + number};
            bhemu_noc_write(0, BHEMU_PLACE(1, 2), {0x52000 + 16 * number}, (void *)0x50000, 16);
            bhemu_l1_semaphore_add(0, BHEMU_PLACE(1, 2), {semaphore}, 1);
        """
        programs[place] = {"B": kernel(send)}
    run(chip, programs)
    assert chip[1, 2].read_word(0x53000) == 201
    assert chip[1, 2].read_word(semaphore or 0) == 0


def test_two_cores_wait_for_their_own_requests_on_one_noc(chip: bhemu.Chip, kernel: Put) -> None:
    def copies(core: str, at: int) -> Path:
        text = f"""
            for (unsigned i = 0; i < 50; i++) {{
                bhemu_noc_read(0, BHEMU_PLACE(3, 4), 0x40000 + 64 * i, (void *){at}, 64);
                bhemu_noc_barrier(0);
                bhemu_noc_write(0, BHEMU_PLACE(5, 6), {at} + 64 * i, (void *){at}, 64);
                bhemu_noc_barrier(0);
            }}
        """
        return kernel(text, core)

    content = pattern(3200, 5)
    chip[3, 4].write(0x40000, content)
    run(chip, {(1, 2): {"B": copies("B", 0x60000), "NC": copies("NC", 0x70000)}})
    assert chip[5, 6].read(0x60000, 3200) == chip[5, 6].read(0x70000, 3200) == content


RING = "bhemu_buffer ring = {.stream = 5, .base = 0x60000, .page_bytes = 64, .pages = 3, .count = 0xFFFE};"


def test_circular_buffer_hands_pages_over_in_order_and_its_counters_wrap(chip: bhemu.Chip, kernel: Put) -> None:
    """NC fills pages of a ring of three, B adds them up; both counters pass 2^16 on the way."""
    for register in (0x5020, 0x5028):
        chip[2, 3].write_word(0xFFB40000 + register, 0xFFFE)
    produce = """
        for (unsigned i = 1; i <= 20; i++) {
            bhemu_buffer_reserve(&ring, 1);
            *(volatile uint32_t *)bhemu_buffer_address(&ring) = i;
            bhemu_buffer_push(&ring, 1);
        }
    """
    consume = """
        uint32_t total = 0;
        for (unsigned i = 0; i < 10; i++) {
            bhemu_buffer_wait(&ring, 2);
            total = total * 3 + *(volatile uint32_t *)bhemu_buffer_address(&ring);
            bhemu_buffer_pop(&ring, 1);
            total = total * 3 + *(volatile uint32_t *)bhemu_buffer_address(&ring);
            bhemu_buffer_pop(&ring, 1);
        }
        *(volatile uint32_t *)0x53000 = total;
    """
    run(chip, {(2, 3): {"NC": kernel(produce, "NC", RING), "B": kernel(consume, "B", RING)}})
    expected = 0
    for number in range(1, 21):
        expected = (expected * 3 + number) & 0xFFFFFFFF
    assert chip[2, 3].read_word(0x53000) == expected


def test_reset_of_a_circular_buffer_empties_its_counters(chip: bhemu.Chip, kernel: Put) -> None:
    chip[2, 3].write_word(0xFFB45028, 9)
    run(chip, {(2, 3): {"B": kernel("bhemu_buffer_reset(&ring);", "B", RING)}})
    assert chip[2, 3].read_word(0xFFB45028) == chip[2, 3].read_word(0xFFB45020) == 0


def test_mailboxes_carry_words_between_named_cores(chip: bhemu.Chip, kernel: Put) -> None:
    ask = """
        bhemu_mailbox_send(BHEMU_T1, 20);
        *(volatile uint32_t *)0x53000 = bhemu_mailbox_receive(BHEMU_T1);
    """
    answer = """
        while (!bhemu_mailbox_ready(BHEMU_B)) {
        }
        bhemu_mailbox_send(BHEMU_B, bhemu_mailbox_receive(BHEMU_B) + 1);
    """
    run(chip, {(2, 3): {"B": kernel(ask), "T1": kernel(answer, "T1")}})
    assert chip[2, 3].read_word(0x53000) == 21


def test_semaphore_take_waits_for_another_core_to_post(chip: bhemu.Chip, kernel: Put) -> None:
    post = """
        TTI_SEMINIT(15, 0, BHEMU_SEMAPHORE_MASK(BHEMU_MATH_PACK));
        bhemu_tensix_sync();
        bhemu_wait(300);
        *(volatile uint32_t *)0x53000 = 77;
        bhemu_fence();
        bhemu_semaphore_post(BHEMU_MATH_PACK);
    """
    take = """
        bhemu_semaphore_take(BHEMU_MATH_PACK);
        *(volatile uint32_t *)0x53004 = *(volatile uint32_t *)0x53000;
        *(volatile uint32_t *)0x53008 = bhemu_semaphore_value(BHEMU_MATH_PACK);
    """
    chip[2, 3].write(0x53000, b"\xff" * 16)
    run(chip, {(2, 3): {"T1": kernel(post, "T1"), "T2": kernel(take, "T2")}})
    assert [chip[2, 3].read_word(0x53000 + 4 * i) for i in range(3)] == [77, 77, 0]


def test_names_of_cores_and_semaphores_are_those_of_python() -> None:
    text = resources.files("bhemu.cc").joinpath("data", "bhemu.h").read_text()
    defined = {name: int(value) for name, value in re.findall(r"#define BHEMU_(\w+) +(\d+)\n", text)}
    assert {name: defined[name] for name in CORE_NAMES} == {name: i for i, name in enumerate(CORE_NAMES)}
    assert {s.name: defined[s.name] for s in bhemu.Semaphore} == {s.name: s.value for s in bhemu.Semaphore}
