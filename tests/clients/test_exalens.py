"""The unmodified tt-exalens 0.4.2 on bhemu's C library: device, memory, resets, registers (`make test-clients`)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.clients

Commands = Callable[..., list[str]]
Script = Callable[[str], str]


def test_device_information(commands: Commands) -> None:
    tensix, ids, blocks = commands("device", "device noc0 noc0_id --no-legend", "device noc0 block --no-legend")
    rows = [line.split() for line in tensix.splitlines() if re.match(r"\d\d  ", line)]
    assert [row[1:] for row in rows] == [["-----"] * 14] * 10, tensix
    # every node reads its own coordinates; tt-exalens shows none for PCIe nodes, whose registers it wants through BAR0
    table = {int(row[0]): row[1:] for line in ids.splitlines() if (row := line.split()) and re.match(r"\d\d  ", line)}
    pcie = ((2, 0), (11, 0))
    assert table == {y: [f"{x:02}-{y:02}" for x in range(17) if (x, y) not in pcie] for y in range(12)}, ids
    assert blocks.count("functional_workers") == 140, blocks


def test_megabytes_of_l1_and_dram(script: Script) -> None:
    """L1 by default calls; tt-exalens 0.4.2 itself refuses writes to a simulator's DRAM in its safe mode."""
    out = script(
        """
from ttexalens.exceptions import UnsafeAccessException
def read(at, address, size):
    return bytes(lib.read_from_device(at, address, num_bytes=size, context=context))
for place in ("0,0", "7,9", "0-0", "9-3", "0-5"):
    at = OnChipCoordinate.create(place, device)
    content = os.urandom(1 << 20)
    dram = at.noc_block.block_type == "dram"
    print(place, at.noc_block.block_type)
    if dram:
        try:
            lib.write_to_device(at, 0x20000, content, context=context)
        except UnsafeAccessException:
            assert read(at, 0x20000, len(content)) == bytes(len(content))
        else:
            print("this version of tt-exalens writes to a simulator's DRAM")
    lib.write_to_device(at, 0x20000, content, safe_mode=False if dram else None, context=context)
    assert read(at, 0x20000, len(content)) == content, place
    assert read(at, 0x20003, 5) == content[3:8], place
"""
    )
    assert out.splitlines()[:5] == [
        "0,0 functional_workers",
        "7,9 functional_workers",
        "0-0 dram",
        "9-3 dram",
        "0-5 dram",
    ]


def test_memory_by_commands(commands: Commands) -> None:
    outs = commands(
        "wxy 0,0 0x1000 0x12345678",
        "brxy 0,0 0x1000 2",
        "wxy 0-0 0x40000000 0x89abcdef",
        "brxy 0-0 0x40000000 1",
        options=("--unsafe-mode",),
    )
    assert re.search(r"0x00001000:\s+12345678\s+00000000", outs[1]), outs[1]
    assert re.search(r"0x40000000:\s+89abcdef", outs[3]), outs[3]


def test_resets_and_status(commands: Commands) -> None:
    names = ["brisc", "trisc0", "trisc1", "trisc2"]  # core NC has no debug interface

    def states(text: str) -> dict[str, str]:
        return {name: state for state, name in re.findall(r"^  ([A-Z ]+?)(?: PC=\w+)? - (\w+) ", text, re.MULTILINE)}

    before, _, _, _, running, _, halted, _, after = commands(
        "riscv status",
        "wxy 0,0 0 0x00000013",
        "wxy 0,0 4 0xffdff06f",
        "riscv reset 0 -r brisc",
        "riscv status",
        "riscv halt -r brisc",
        "riscv status",
        "riscv reset 1 -r brisc",
        "riscv status",
    )
    held = dict.fromkeys(names, "IN RESET")
    assert states(before) == states(after) == held, before + after
    assert states(running) == held | {"brisc": "RUNNING"}, running
    assert states(halted) == held | {"brisc": "HALTED"}, halted


def test_registers(commands: Commands) -> None:
    name = "UNPACK_CONFIG0_out_data_format"
    before, _, after, word, _, debug = commands(
        f"tensix-reg {name}",
        f"tensix-reg {name} --write 5",
        f"tensix-reg {name}",
        "tensix-reg cfg(72)",
        "tensix-reg dbg(0x234) --write 5",
        "tensix-reg dbg(0x234)",
    )
    assert "Float32" in before
    assert "Float16_b" in after
    assert int(word.split()[-1]) == 5
    assert int(debug.split()[-1]) == 5


def test_noc_registers(script: Script) -> None:
    """The tile's own network interface, asked by the host, reads 192 bytes of another tile."""
    out = script(
        """
there = OnChipCoordinate.create("1,0", device)
content = os.urandom(192)
lib.write_to_device(there, 0x2000, content, context=context)
place, back = ((x | y << 6) for x, y in (there.to("noc0"), core.to("noc0")))
request = {0: 0x2000, 4: 0, 8: place, 0xC: 0x3000, 0x10: 0, 0x14: back, 0x18: 0, 0x1C: 0x2090, 0x20: 192, 0x40: 1}
for offset, value in request.items():
    lib.write_words_to_device(core, 0xFFB20000 + offset, value, safe_mode=False, context=context)
assert bytes(lib.read_from_device(core, 0x3000, num_bytes=192, context=context)) == content
command("noc register NIU_MST_RD_REQ_SENT,NIU_MST_RD_RESP_RECEIVED,NIU_MST_RD_DATA_WORD_RECEIVED -s")
command("noc status -s")
command("noc status -s -l 1,0")
command("noc all -s")
"""
    )

    def registers(text: str) -> dict[str, int]:
        return {address: int(value, 16) for address, value in re.findall(r"(0xffb[23]\w{4})\s+(0x\w{8})", text)}

    register, mine, theirs, everything = (registers(part) for part in out.split("Executing command: ")[1:])
    nothing = dict.fromkeys(["0xffb30208", "0xffb3020c", "0xffb30214"], 0)
    assert register == nothing | {"0xffb20208": 1, "0xffb2020c": 3, "0xffb20214": 1}
    assert {address: value for address, value in mine.items() if value} == {
        "0xffb20208": 1,
        "0xffb2020c": 3,
        "0xffb20214": 1,
    }
    assert {address: value for address, value in theirs.items() if value} == {
        "0xffb202c8": 1,
        "0xffb202cc": 3,
        "0xffb202d4": 1,
    }
    assert mine.items() <= everything.items()
