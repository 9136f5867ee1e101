"""What a release consists of: reproducible archives, their contents, version, change log, notebooks."""

from __future__ import annotations

import filecmp
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tools import build_release, notebooks

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[list[Path]]:
    """Two builds of wheel and source archive."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1760000000")
        patch.delenv("BHEMU_NATIVE", raising=False)
        return [build_release.build(tmp_path_factory.mktemp("dist")) for _ in range(2)]


def test_two_builds_are_equal_byte_for_byte(built: list[list[Path]]) -> None:
    for first, second in zip(*built, strict=True):
        assert first.name == second.name
        assert filecmp.cmp(first, second, shallow=False)


def test_wheel_is_pure_and_has_every_file_of_the_package(built: list[list[Path]]) -> None:
    (wheel,) = (file for file in built[0] if file.suffix == ".whl")
    assert wheel.name == f"bhemu-{PROJECT['version']}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.startswith("bhemu-")}
    here = {file.relative_to(ROOT).as_posix() for file in (ROOT / "bhemu").rglob("*") if file.is_file()}
    here = {name for name in here if "__pycache__" not in name and not name.endswith((".pyc", ".so"))}
    assert names == here


def test_archives_name_no_folder_of_the_machine_that_built_them(built: list[list[Path]]) -> None:
    archive = next(file for file in built[0] if file.name.endswith(".tar.gz"))
    with tarfile.open(archive) as source:
        assert not [member.name for member in source if member.name.startswith(("/", ".."))]
        assert {(member.uid, member.uname) for member in source} == {(0, "")}


def test_native_files_make_a_wheel_for_the_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "bhemu.so").write_bytes(b"compiled")
    monkeypatch.setenv("BHEMU_NATIVE", str(tmp_path / "native"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1760000000")
    wheel = next(file for file in build_release.build(tmp_path / "dist") if file.suffix == ".whl")
    assert re.fullmatch(r"bhemu-[\d.]+-py3-none-linux_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("bhemu/native/bhemu.so") == b"compiled"
        assert b"Root-Is-Purelib: false" in archive.read(f"bhemu-{PROJECT['version']}.dist-info/WHEEL")


def test_version_is_the_same_everywhere() -> None:
    version = PROJECT["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_container_file_copies_what_exists_and_installs_what_the_docs_name() -> None:
    text = (ROOT / "Containerfile").read_text()
    assert set(re.findall(r"^(\w+)", text.replace("\\\n", ""), re.MULTILINE)) <= {
        "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    assert "gcc-riscv64-unknown-elf" in text
    assert "picolibc-riscv64-unknown-elf" in text


@pytest.mark.parametrize("name", notebooks.PAGES)
def test_notebook_has_the_code_of_its_page(name: str) -> None:
    page = ROOT / "docs" / name
    cells = notebooks.notebook(page)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code
    for each in code:
        compile("\n".join(line for line in each.splitlines() if not line.startswith(("!", "%"))), name, "exec")
    assert "".join("".join(cell["source"]) for cell in cells).count("```text title") == 0


def test_notebook_that_fails_is_caught(tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    from nbclient.exceptions import CellExecutionError

    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\n1 / 0\n```\n")
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        notebooks.execute(notebooks.notebook(page), tmp_path)
