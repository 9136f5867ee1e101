"""`bhemu run kernel.elf`: programs on the cores, files into and out of memory, the report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bhemu.cc import MissingTool
from bhemu.cc import compile_kernel as build
from tests.cli.cli_programs import Invoke
from tests.loader.boot_programs import START, store, write_elf
from tests.loader.elf_files import Name
from tests.loader.firmware_set import KERNEL, write_set
from tests.loader.firmware_set import RESULT as FIRMWARE_RESULT
from tests.riscv.rv_asm import assemble

RESULT = 0x20000
COPY = """
    li t0, 0x21000
    li t1, 0x22000
    li t3, 0x21800
loop: lw t2, 0(t0)
    sw t2, 0(t1)
    addi t0, t0, 4
    addi t1, t1, 4
    bltu t0, t3, loop
    ebreak
"""
"""Copies 2048 bytes, a tile of BF16, from 0x21000 to 0x22000."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    names = (Name("input", 0x21000, 2048, kind=1), Name("output", 0x22000, 2048, kind=1))
    return write_elf(tmp_path / "copy.elf", COPY, names=names)


def test_report_names_core_program_state_instructions_and_clocks(bhemu: Invoke, tmp_path: Path) -> None:
    path = write_elf(tmp_path / "kernel.elf", f".ttinsn 0x45000000\n{store(1)}")
    result = bhemu("run", path)
    assert result.exit_code == 0, result.stderr
    report = result.stdout
    assert f"{path}" in report
    assert "halted by ebreak" in report
    assert "0x00010 _start+0x10" in report
    assert "SETDMAREG 1" in report
    assert "5 instructions of the cores" in report
    assert "MIPS" in report


def test_json_report_has_cores_clocks_and_instructions(bhemu: Invoke, tmp_path: Path) -> None:
    result = bhemu("run", write_elf(tmp_path / "kernel.elf", store(1)), "--json")
    report = json.loads(result.stdout)
    assert report["ended"] == "done"
    assert report["clocks"] == report["retired"] == 4
    assert report["cores"] == [
        {
            "name": "B",
            "state": "halted",
            "why": "ebreak",
            "pc": 12,
            "place": "0x0000c _start+0xc",
            "retired": 4,
            "exit_code": None,
        }
    ]
    assert report["instructions"] == {}


def test_tensor_goes_in_and_out_in_a_tensix_format(bhemu: Invoke, copy: Path, tmp_path: Path) -> None:
    values = np.arange(1024, dtype=np.float32).reshape(32, 32) / 8
    np.save(tmp_path / "a.npy", values)
    result = bhemu(
        "run", copy, "--write", f"input={tmp_path / 'a.npy'}:bf16", "--read", f"output:32x32:bf16={tmp_path / 'c.npy'}"
    )
    assert result.exit_code == 0, result.stderr
    got = np.load(tmp_path / "c.npy", allow_pickle=False)
    assert got.dtype == np.float32
    from ml_dtypes import bfloat16

    np.testing.assert_array_equal(got, values.astype(bfloat16).astype(np.float32))


def test_formats_shape_and_tile_order_are_those_of_the_command_line(bhemu: Invoke, copy: Path, tmp_path: Path) -> None:
    """Written row by row and read as tiles, the four faces change places."""
    values = np.arange(1024, dtype=np.float32).reshape(32, 32) % 128
    np.save(tmp_path / "a.npy", values)
    result = bhemu(
        *("run", copy, "--write", f"0x21000={tmp_path / 'a.npy'}:bf16:32x32:row-major"),
        *("--read", f"0x22000:32x32:bf16:32x32={tmp_path / 'c.npy'}"),
        *("--read", f"0x22000:32x32:bf16:row-major={tmp_path / 'd.npy'}"),
    )
    assert result.exit_code == 0, result.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), values)
    tiles = values.reshape(2, 2, 16, 16).transpose(0, 2, 1, 3).reshape(32, 32)
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), tiles)


@pytest.mark.parametrize(
    ("form", "dtype"), [("u32", "u4"), ("u16", "u2"), ("u8", "u1"), ("i32", "i4"), ("i8", "i1"), ("f32", "f4")]
)
def test_plain_numbers_go_in_and_out_as_c_has_them(
    bhemu: Invoke, copy: Path, tmp_path: Path, form: str, dtype: str
) -> None:
    values = np.array([[1, 2, 3], [0, 7, 100]], dtype)
    np.save(tmp_path / "a.npy", values.astype(np.int64) if dtype[0] != "f" else values)
    result = bhemu(
        *("run", copy, "--write", f"input={tmp_path / 'a.npy'}:{form}"),
        *("--read", f"output:2x3:{form}={tmp_path / 'c.npy'}"),
    )
    assert result.exit_code == 0, result.stderr
    got = np.load(tmp_path / "c.npy")
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(got, values)


def test_bytes_go_in_and_out_as_they_are(bhemu: Invoke, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(range(64)))
    result = bhemu("run", copy, "--write", f"input={tmp_path / 'a.bin'}", "--read", f"B.output:64={tmp_path / 'c.bin'}")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "c.bin").read_bytes() == bytes(range(64))


def test_local_ram_is_read_by_core(bhemu: Invoke, tmp_path: Path) -> None:
    path = write_elf(tmp_path / "kernel.elf", store(0x1234, 0xFFB00040), START["T1"])
    result = bhemu("run", path, "--read", f"T1.0xffb00040:1:u32={tmp_path / 'c.npy'}")
    assert result.exit_code == 0, result.stderr
    assert np.load(tmp_path / "c.npy").tolist() == [0x1234]


def test_several_cores_run_at_once(bhemu: Invoke, tmp_path: Path) -> None:
    programs = [
        f"{core}={write_elf(tmp_path / f'{core}.elf', store(i + 1, RESULT + 4 * i), START[core])}"
        for i, core in enumerate(START)
    ]
    result = bhemu("run", *programs, "--read", f"{RESULT:#x}:5:u32={tmp_path / 'c.npy'}")
    assert result.exit_code == 0, result.stderr
    assert np.load(tmp_path / "c.npy").tolist() == [1, 2, 3, 4, 5]
    for core in START:
        assert f"{core}.elf" in result.stdout


def test_core_option_chooses_the_core_of_a_single_file(bhemu: Invoke, tmp_path: Path) -> None:
    path = write_elf(tmp_path / "kernel.elf", store(1), 0x30000)
    assert json.loads(bhemu("run", path, "--core", "nc", "--json").stdout)["cores"][0]["name"] == "NC"
    assert json.loads(bhemu("run", path, "--json").stdout)["cores"][0]["name"] == "B"


COUNT = "li t0, 0x20000\nli t1, 0\nloop: addi t1, t1, 1\nsw t1, 0(t0)\nj loop"


def test_until_symbol_and_until_word_end_the_run(bhemu: Invoke, tmp_path: Path) -> None:
    path = write_elf(tmp_path / "kernel.elf", COUNT, names=(Name("loop", 8, 12),))
    result = bhemu("run", path, "--until", "loop", "--json")
    assert json.loads(result.stdout)["clocks"] == 2
    result = bhemu("run", path, "--until", "0xc", "--json")
    assert json.loads(result.stdout)["clocks"] == 3
    path = write_elf(tmp_path / "kernel.elf", f"{store(32)[:-6]}loop: addi t0, t0, 1\nj loop")
    result = bhemu("run", path, "--until-word", "0x20000=32", "--json")
    report = json.loads(result.stdout)
    assert report["ended"] == "until"
    assert report["clocks"] == 32


def test_end_before_the_condition_is_a_failure(bhemu: Invoke, tmp_path: Path) -> None:
    result = bhemu("run", write_elf(tmp_path / "kernel.elf", store(1)), "--until-word", "0x20000=2")
    assert result.exit_code == 1
    assert "all cores ended, and 0x20000=2 never came" in result.stderr


def test_exit_status_is_the_one_of_the_program(bhemu: Invoke, tmp_path: Path) -> None:
    path = write_elf(tmp_path / "kernel.elf", "li a7, 93\nli a0, 7\necall")
    result = bhemu("run", path, "--semihosting")
    assert result.exit_code == 7
    assert "core B called exit(7)" in result.stdout


def test_what_a_program_writes_is_on_standard_output(bhemu: Invoke, tmp_path: Path) -> None:
    text = "li a7, 64\nli a0, 1\nla a1, text\nli a2, 3\necall\nebreak\ntext: .byte 72, 105, 10\n.align 4"
    path = write_elf(tmp_path / "kernel.elf", text)
    result = bhemu("run", path, "--semihosting", "--quiet")
    assert result.stdout == "Hi\n"
    result = bhemu("run", path, "--semihosting", "--json")
    assert json.loads(result.stdout)["ended"] == "done"
    assert "Hi\n" in result.stderr


def test_dump_has_registers_and_memory_by_name(bhemu: Invoke, tmp_path: Path) -> None:
    path = write_elf(tmp_path / "kernel.elf", store(0xABCD))
    assert bhemu("run", path, "--dump", tmp_path / "state.npz").exit_code == 0
    with np.load(tmp_path / "state.npz", allow_pickle=False) as state:
        assert state["l1"][RESULT : RESULT + 2].tolist() == [0xCD, 0xAB]
        assert state["core_x"][0, 6] == 0xABCD
        assert state["core_pc"][0] == 20
        assert state["dst"].shape == (1024, 16)
        assert any(name.startswith("pack.") for name in state.files)


def test_firmware_boots_and_runs_kernels_of_files(bhemu: Invoke, tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set")
    (tmp_path / "kernel.bin").write_bytes(assemble(KERNEL))
    result = bhemu("run", "--firmware", folder, "--kernel", f"B={tmp_path / 'kernel.bin'}")
    assert result.exit_code == 0, result.stderr
    assert "booted in" in result.stdout
    assert "kernels returned after" in result.stdout
    kernel = write_elf(tmp_path / "kernel.elf", KERNEL, 0x24000)
    arguments = ("--kernel", f"b={kernel}", "--read", f"{FIRMWARE_RESULT:#x}:1:u32={tmp_path / 'c.npy'}", "--json")
    result = bhemu("run", "--firmware", folder, *arguments)
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert 0 < report["boot"]["released"] <= report["boot"]["done"]
    assert report["launch_clocks"] > 0
    assert np.load(tmp_path / "c.npy").tolist() == [0x77]


def test_kernel_of_bhemu_cc_runs_and_its_result_is_read_by_symbol(bhemu: Invoke, tmp_path: Path) -> None:
    source = tmp_path / "kernel.c"
    source.write_text(
        "#include <bhemu.h>\n"
        "BHEMU_L1 uint32_t squares[8];\n"
        "static uint32_t table[4] = {1, 2, 3, 4};\n"
        "volatile uint32_t local = 5;\n"
        "int main(void) {\n"
        "    for (uint32_t i = 0; i < 8; i++) squares[i] = i * i + table[i & 3] * (local - 5);\n"
        "    return STATUS;\n"
        "}\n"
    )
    try:
        build([source], tmp_path / "kernel.elf", core="T1", options=["-DSTATUS=0"])
        build([source], tmp_path / "failing.elf", core="T1", options=["-DSTATUS=3"])
    except MissingTool as error:
        pytest.skip(f"compiled kernels are NOT tested: {error}")
    result = bhemu("run", tmp_path / "kernel.elf", "--read", f"squares:8:u32={tmp_path / 'c.npy'}")
    assert result.exit_code == 0, result.stderr
    assert np.load(tmp_path / "c.npy").tolist() == [i * i for i in range(8)]
    assert "T1" in result.stdout
    assert "main returned 0" in result.stdout
    result = bhemu("run", tmp_path / "failing.elf")
    assert result.exit_code == 1
    assert "main returned 3" in result.stdout
    assert "main of core T1 returned 3" in bhemu("run", tmp_path / "failing.elf", "-q").stderr
