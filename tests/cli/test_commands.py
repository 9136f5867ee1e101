"""The commands other than `run`: each prints what its library function returns, and its exit status can be trusted."""

from __future__ import annotations

import importlib.metadata
import json
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from bhemu.conformance.run import VECTORS
from bhemu.formats import encode
from tests.cli.cli_programs import Invoke


def test_the_command_starts_without_the_emulator() -> None:
    heavy = ("numba", "numpy", "bhemu.api", "bhemu.isa")
    script = f"import sys, bhemu.cli.main; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_version(bhemu: Invoke) -> None:
    result = bhemu("--version")
    assert result.exit_code == 0
    assert result.stdout == f"bhemu {importlib.metadata.version('bhemu')}\n"


def test_help_names_every_command(bhemu: Invoke) -> None:
    text = bhemu("--help").stdout
    for command in ("run", "conformance", "support", "asm", "disasm", "regs", "tile", "bench", "warm"):
        assert command in text
        assert bhemu(command, "--help").exit_code == 0


def test_unknown_command_has_status_2(bhemu: Invoke) -> None:
    assert bhemu("runn").exit_code == 2


# --- conformance ---------------------------------------------------------------------------------


@pytest.fixture
def wrong_vectors(tmp_path: Path) -> Path:
    """The frontend family with every expected semaphore and mutex value wrong."""
    with np.load(VECTORS / "frontend.npz", allow_pickle=False) as content:
        arrays = {key: content[key] for key in content.files}
    arrays["exp_sync_val"] = arrays["exp_sync_val"] ^ 0x40
    path = tmp_path / "wrong.npz"
    np.savez(path, **arrays)
    return path


def test_conformance_that_passes_has_status_0_and_a_line_for_each_label(bhemu: Invoke) -> None:
    result = bhemu("conformance", VECTORS / "frontend.npz")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["frontend", "in", "all", "300", "0", "0"] in rows
    assert [row[1] for row in rows if row[-2:] == ["0", "0"] and row[1] == "SEMPOST"] == ["SEMPOST"]


def test_conformance_that_fails_has_status_1_and_shows_program_and_cells(bhemu: Invoke, wrong_vectors: Path) -> None:
    result = bhemu("conformance", wrong_vectors, "--show", 1)
    assert result.exit_code == 1
    assert "T" in result.stdout
    assert result.stdout.count("labels:") == 1
    assert "sync[" in result.stdout
    assert "expected 0x4" in result.stdout
    assert "more differences" in result.stdout


def test_conformance_json_holds_every_difference(bhemu: Invoke, wrong_vectors: Path) -> None:
    result = bhemu("conformance", wrong_vectors, "--json", "--label", "SEMPOST", "--limit", 5)
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["clean"] is False
    [file] = report["files"]
    assert file["failed"] == len(file["differences"]) > 0
    assert file["passed"] + file["failed"] + file["refused"] == 5


def test_label_that_no_case_has_is_refused(bhemu: Invoke) -> None:
    result = bhemu("conformance", VECTORS / "frontend.npz", "--label", "SEMPOSTT")
    assert result.exit_code == 1
    assert "SEMPOST" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut"])
def test_file_that_is_no_vector_file_is_refused(bhemu: Invoke, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    result = bhemu("conformance", path)
    assert result.exit_code == 1
    assert "FormatError" in result.stderr


# --- support -------------------------------------------------------------------------------------


def test_support_lists_only_the_unit_and_fidelity_asked_for(bhemu: Invoke) -> None:
    rows = json.loads(bhemu("support", "--json", "--unit", "sync", "--fidelity", "verified").stdout)
    assert {row["mnemonic"] for row in rows} >= {"SEMPOST", "SEMGET", "STALLWAIT"}
    assert {(row["unit"], row["fidelity"]) for row in rows} == {("sync", "verified")}


def test_support_table_counts_modes(bhemu: Invoke) -> None:
    result = bhemu("support")
    assert result.exit_code == 0
    assert "SEMPOST" in result.stdout
    assert " verified, " in result.stdout.splitlines()[-1]


def test_unknown_unit_is_a_usage_error(bhemu: Invoke) -> None:
    assert bhemu("support", "--unit", "fpu").exit_code == 2


# --- asm, disasm, regs ---------------------------------------------------------------------------


def test_asm_and_disasm_are_inverse(bhemu: Invoke) -> None:
    words = bhemu("asm", "SETDMAREG 0x1234, 6", "TTI_SETADCXX(4, 15, 0)").stdout.split()
    assert words[1] == "0x5E803C00"
    lines = bhemu("disasm", *words).stdout.splitlines()
    assert lines[1] == "SETADCXX CntSetMask=4, x_end2=15, x_start=0"
    assert bhemu("asm", *lines).stdout.split() == words


def test_ttinsn_rotates_both_ways(bhemu: Invoke) -> None:
    assert bhemu("asm", "--ttinsn", "NOP").stdout == "0x08000000\n"
    assert bhemu("disasm", "--ttinsn", "0x08000000").stdout == "NOP\n"


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (("asm", "SETDMARG 1"), 1, "SETDMAREG"),
        (("asm", "NOP", "SEMPOST 256"), 1, "256"),
        (("disasm", "zz"), 2, "'zz'"),
        (("disasm", "0x123456789"), 1, "0x123456789"),
        (("regs", "70", "0x100000000"), 2, "0x100000000"),
        (("regs", "224"), 1, "224"),
        (("regs", "ReLU", "3"), 2, "'ReLU'"),
        (("regs", "no such text"), 1, "no such text"),
        (("regs", "0xffb12098"), 1, "0xffb12098"),
        (("regs", "0xffb121b0", "0x100000000"), 2, "0x100000000"),
    ],
)
def test_wrong_text_or_word_is_refused_and_prints_no_result(
    bhemu: Invoke, arguments: tuple[str, ...], status: int, word: str
) -> None:
    result = bhemu(*arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert word in result.stderr


def test_regs_takes_a_word_apart(bhemu: Invoke) -> None:
    fields = {f["name"]: f["value"] for f in json.loads(bhemu("regs", "0", "0x4e33", "--json").stdout)}
    assert fields["ALU_FORMAT_SPEC_REG_SrcA_val"] == 3
    assert fields["ALU_FORMAT_SPEC_REG_SrcA_override"] == 1
    assert fields["ALU_FORMAT_SPEC_REG_Dstacc_val"] == 3
    assert fields["ALU_FORMAT_SPEC_REG_Dstacc_override"] == 1


def test_regs_searches_and_shows_the_whole_map(bhemu: Invoke) -> None:
    found = bhemu("regs", "STACC_RELU").stdout
    assert "STACC_RELU_ReluThreshold" in found
    assert "ALU_FORMAT" not in found
    every = bhemu("regs").stdout
    assert "STACC_RELU_ReluThreshold" in every
    assert "thread" in every


def test_bits_outside_of_every_field_are_mentioned(bhemu: Invoke) -> None:
    assert "bits 0x8000 of word 0 belong to no field" in bhemu("regs", "0", "0x8000").stderr


def test_regs_finds_registers_of_the_tile_by_text_and_by_address(bhemu: Invoke) -> None:
    found = json.loads(bhemu("regs", "SOFT_RESET", "--json").stdout)
    assert [(row["block"], row["address"], row["access"]) for row in found] == [("control", 0xFFB121B0, "rw")]
    shown = json.loads(bhemu("regs", "0xffb121b0", "0x47000", "--json").stdout)[0]
    values = {field["name"]: field["value"] for field in shown["fields"]}
    assert (values["B"], values["T0"], values["NC"]) == (0, 1, 1)
    assert "SOFT_RESET_0" in bhemu("regs", "0xffb121b0").stdout
    assert json.loads(bhemu("regs", "0xffef0008", "--json").stdout) == json.loads(bhemu("regs", "2", "--json").stdout)
    assert json.loads(bhemu("regs", "0xffef0a80", "--json").stdout)[0]["space"] == "thread"


def test_regs_lists_the_registers_of_the_tile(bhemu: Invoke) -> None:
    every = bhemu("regs", "--tile").stdout
    assert "SOFT_RESET_0" in every
    assert "NODE_ID" in every
    assert "ALU_FORMAT" not in every


# --- tile ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_format", ["bf16", "bfp8", "fp32", "int8"])
def test_tile_encode_and_decode_are_inverse(bhemu: Invoke, tmp_path: Path, data_format: str) -> None:
    values = np.arange(64 * 32).reshape(64, 32) % 100
    source, middle, target = tmp_path / "a.npy", tmp_path / "a.bin", tmp_path / "b.npy"
    np.save(source, values.astype(np.int32 if data_format == "int8" else np.float32))
    assert bhemu("tile", "encode", source, middle, "--format", data_format).exit_code == 0
    assert middle.read_bytes() == encode(np.load(source), data_format).tobytes()
    result = bhemu("tile", "decode", middle, target, "--format", data_format, "--shape", "64x32")
    assert result.exit_code == 0, result.stderr
    got = np.load(target)
    assert got.dtype == (np.int8 if data_format == "int8" else np.float32)
    np.testing.assert_allclose(got, values, atol=0.5 if data_format == "bfp8" else 0)


def test_tile_of_wrong_size_is_refused_and_writes_nothing(bhemu: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(2047))
    result = bhemu("tile", "decode", tmp_path / "a.bin", tmp_path / "b.npy", "--format", "bf16", "--shape", "32x32")
    assert result.exit_code == 1
    assert "2047 bytes" in result.stderr
    assert not (tmp_path / "b.npy").exists()


def test_tile_show_prints_faces_exponents_and_raw_datums(bhemu: Invoke, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.eye(32, dtype=np.float32))
    text = bhemu("tile", "show", tmp_path / "a.npy", "--format", "bfp8", "--bits", "--face", 3).stdout
    assert "face 3 (bottom-right), bits" in text
    assert "face 3 (bottom-right), values" in text
    assert "face 0" not in text
    assert " 0 | e=127  40 00" in text


def unfilter(content: bytes) -> np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]:
    """Pixels of a PNG whose rows have no filter; asserts the chunks' checksums."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        kind, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        assert struct.unpack(">I", content[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + data),)
        chunks[kind] = data
        at += 12 + length
    width, height, depth, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colour) == (8, 2)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_tile_picture_shows_sign_size_and_nan(bhemu: Invoke, tmp_path: Path) -> None:
    values = np.zeros((32, 32), np.float32)
    values[0, 0], values[0, 31], values[31, 0], values[31, 31] = 2.0, -2.0, np.nan, 1.0
    np.save(tmp_path / "a.npy", values)
    picture = tmp_path / "a.png"
    assert bhemu("tile", "show", tmp_path / "a.npy", "--format", "fp32", "--png", picture).exit_code == 0
    pixels = unfilter(picture.read_bytes())
    assert pixels[0, 0].tolist() == [178, 24, 43]
    assert pixels[0, -1].tolist() == [33, 102, 172]
    assert pixels[-1, 0].tolist() == [255, 200, 0]
    assert pixels[20, 20].tolist() == [247, 247, 247]
    red, green, _blue = pixels[-1, -1].tolist()
    assert 178 < red < 247
    assert 24 < green < 247


# --- bench, warm ---------------------------------------------------------------------------------


def test_bench_measures_the_figure_asked_for(bhemu: Invoke) -> None:
    [figure] = json.loads(bhemu("bench", "--only", "SEMINIT", "--json").stdout)
    assert figure["name"] == "SEMINIT"
    assert 0 < figure["low_ns"] <= figure["median_ns"] <= figure["high_ns"]


def test_bench_refuses_an_unknown_figure(bhemu: Invoke) -> None:
    result = bhemu("bench", "--only", "NOTHING")
    assert result.exit_code == 1
    assert "'NOTHING'" in result.stderr


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_what_warm_compiles_is_found_in_the_cache(tmp_path: Path) -> None:
    from bhemu.capi.objects import CLOCK
    from bhemu.isa.instructions import INSTRUCTIONS

    environment = {**os.environ, "BHEMU_CACHE": str(tmp_path)}
    opcodes = [CLOCK, INSTRUCTIONS["NOP"].opcode]
    script = f"from bhemu.capi.objects import compile_part as c; print([c(part).compiled for part in {opcodes}])"
    for expected in ("[1, 1]\n", "[0, 0]\n"):
        command = [sys.executable, "-c", script]
        assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == expected


# --- where the output goes -----------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("arguments", [["regs"], ["regs", "70", "--json"], ["--help"], ["--version"], ["asm", "NOP"]])
def test_output_to_a_full_device_is_one_line_and_a_status(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "bhemu", *arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "bhemu: the output cannot be written: No space left on device\n")


def test_an_empty_text_is_not_searched_in_the_registers() -> None:
    done = subprocess.run([sys.executable, "-m", "bhemu", "regs", ""], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("bhemu: UsageError: an empty text\n  remedy:")


FETCH = """
import sys
from pathlib import Path
from bhemu.cli import main
from bhemu.machine.cache import fetch
main.app = lambda: [fetch(Path(sys.argv[1]) / "modules.bin") for _ in range(2)]
main.main()
"""


def test_a_cache_that_is_not_used_is_said_in_one_line(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    (cache / "modules.bin").write_bytes(b"")
    command = [sys.executable, "-c", FETCH, str(cache)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert said.count("\n") == 1
    assert said.startswith(f"bhemu: the compile cache {cache} is not used")
