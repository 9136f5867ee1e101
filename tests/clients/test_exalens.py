"""The unmodified tt-exalens 0.4.2 and tt-umd 0.9.14 on bhemu's C library (`make test-clients`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

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
    script(
        """
content = bytes(i * 7 >> 3 & 0xFF for i in range(1 << 20))
for place in ("0,0", "7,9", "0-0", "9-3", "0-5"):
    at = OnChipCoordinate.create(place, device)
    lib.write_to_device(at, 0x20000, content, safe_mode=False, context=context)
    def read(address, size):
        return bytes(lib.read_from_device(at, address, num_bytes=size, safe_mode=False, context=context))
    assert read(0x20000, len(content)) == content, place
    assert read(0x20003, 5) == content[3:8], place
"""
    )


def test_resets_and_status(commands: Commands) -> None:
    before, _, running, _, after = commands(
        "riscv status", "wxy 0,0 0 0x6f", "riscv reset 0 -r brisc", "riscv reset 1 -r brisc", "riscv status"
    )[:5]
    assert before.count("IN RESET") == after.count("IN RESET") == 4
    assert "brisc" in running


def test_registers(commands: Commands) -> None:
    name = "UNPACK_CONFIG0_out_data_format"
    before, _, after, debug = commands(
        f"tensix-reg {name}", f"tensix-reg {name} --write 5", f"tensix-reg {name}", "tensix-reg dbg(0x54)"
    )
    assert "Float32" in before
    assert "Float16_b" in after
    assert debug.split()[-1] == "0"


@pytest.mark.parametrize("group", ["alu", "pack", "unpack", "gpr", "rwc", "adc", "rwc -a 0x1000", "adc -a 0x1000"])
def test_tensix_dumps(commands: Commands, group: str) -> None:
    (shown,) = commands(f"tensix {group}")
    heading = {"alu": "Format_Dstacc", "gpr": "Thread"}.get(group, "")
    assert "0x" in shown or "0" in shown
    assert heading.lower() in shown.lower(), shown


def test_noc_registers(commands: Commands) -> None:
    status, one, everything = commands("noc status -s", "noc register NIU_MST_RD_REQ_SENT", "noc all -s")
    for shown in (status, one, everything):
        assert "0xffb20214" in shown
        assert "0xffb30214" in shown
    assert "NIU_MST_RD_REQ_SENT" in one


def test_run_elf_and_callstack(commands: Commands, elf: Path) -> None:
    spend = "brxy 0,0 0x20000 2"
    *_, memory, stack = commands(f"run-elf {elf} -r brisc", *[spend] * 40, f"bt {elf} -r brisc")
    assert re.search(r"0x00020000:\s+00001234", memory), memory
    frames = re.findall(r"#\d .* in (\w+) \(\) at \S*program.c (\d+):", stack)
    assert [name for name, _ in frames][:2] == ["count", "outer"], stack
    assert [line for _, line in frames][1] == "18", stack


def test_halt_step_and_registers(commands: Commands, elf: Path) -> None:
    outs = commands(
        f"run-elf {elf} -r brisc",
        *["brxy 0,0 0x20000 2"] * 40,
        "riscv halt -r brisc",
        "gpr",
        "riscv step -r brisc",
        "gpr pc",
        "riscv rreg 2 -r brisc",
        "riscv cont -r brisc",
        "riscv status -r brisc",
    )[-6:]
    shown, _, stepped, stack_pointer, _, status = outs
    row = {line.split("-", 1)[0].strip(): line for line in shown.splitlines() if re.match(r"\d+ - ", line)}
    assert re.search(r"10 - a0\s+0x00001234", row["10"]), shown
    pcs = [int(match[1], 16) for text in (shown, stepped) if (match := re.search(r"32 - pc\s+(0x\w+)", text))]
    assert pcs[1] in (pcs[0] + 4, pcs[0] - 28), (shown, stepped)
    assert re.search(r"0xffb01f[0-9a-f]{2}", stack_pointer), stack_pointer
    assert "RUNNING" in status


def test_breakpoints_and_watchpoints(script: Script, elf: Path) -> None:
    out = script(
        f"""
program = lib.parse_elf({str(elf)!r}, context)
lib.run_elf({str(elf)!r}, core, "brisc", context=context)
pass_clocks(60)
hardware = brisc.debug_hardware
hardware.halt()
loop = hardware.read_gpr(32)
hardware.step()
hardware.step()
hardware.set_watchpoint_on_pc_address(0, loop)
hardware.cont()
pass_clocks(40)
print("pc", hardware.is_halted(), hardware.is_pc_watchpoint_hit(), hardware.read_gpr(32) - loop == 4)
hardware.disable_watchpoint(0)
hardware.set_watchpoint_on_memory_write(1, 0x20004)
hardware.cont()
pass_clocks(40)
print("write", hardware.is_halted(), hardware.is_memory_watchpoint_hit())
"""
    )
    assert "pc True True True" in out
    assert "write True True" in out


def test_dumps_of_srca_and_dst(script: Script) -> None:
    out = script(
        """
from ttexalens.debug_tensix import TensixDebug
from ttexalens.register_store import TensixDataFormat
tensix = TensixDebug(core)
values = [float(i % 97) for i in range(1024)]
tensix.write_regfile(2, values, TensixDataFormat.Float32)
dst = list(tensix.read_regfile(2, 1))
print("dst", dst == values)
print("srca", len(tensix.read_regfile(0)))
"""
    )
    assert "dst True" in out
    assert "srca 512" in out
