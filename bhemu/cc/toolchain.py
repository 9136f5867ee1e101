"""Which compiler builds a kernel, and where the stock one, its C library and the C++ headers are (B19)."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bhemu.cc.cores import Core
from bhemu.cc.errors import MissingTool
from bhemu.cc.sfpi import CXX_SUFFIXES, Sfpi, find_sfpi

GCC = "riscv64-unknown-elf-gcc"
"""Name of the compiler in Debian and Ubuntu."""
MARCH = "rv32ima_zicsr_zba_zbb"
"""What the cores execute, as far as GCC 12 has names for it; the atomics are amo*.w only (tile T1)."""
ABI = "ilp32"
MACHINE = (f"-march={MARCH}", f"-mabi={ABI}", "-mcmodel=medlow")
"""What selects the cores."""
_LIBRARY_MARCH = "rv32im"
"""The multilib to link with: the largest without compressed, atomic or floating-point instructions."""

PICOLIBC_ROOTS = (Path("/usr/lib/picolibc/riscv64-unknown-elf"),)
CXX_ROOTS = (Path("/usr/include/newlib/c++"),)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """An installed stock compiler with what it needs.

    Attributes:
        gcc: the C driver, an absolute path.
        version: of GCC, such as (12, 2, 0).
        libgcc: directory with the libgcc.a for the cores.
        include: picolibc's headers.
        library: directory with picolibc's libc.a for the cores.
    """

    gcc: Path
    version: tuple[int, ...]
    libgcc: Path
    include: Path
    library: Path

    def machine(self, core: Core) -> tuple[str, ...]:
        """What selects a core: every compile, assembly and link has it. The same for all five."""
        return MACHINE

    def language(self, file: Path, core: Core, data: Path, *, llk: bool) -> list[str]:
        """The compiler's arguments for a source that depend on the compiler.

        Args:
            file: the source.
            core: that it is compiled for.
            data: directory of our headers.
            llk: whether the source may include LLK headers, which then declare what vector code needs.
        """
        options = ["-include", str(data / "prelude.h")]
        if llk:  # in the place of the vendor compiler's own headers (B21)
            options.append(f"-I{data / 'sfpi'}")
            if core.thread is not None:
                options.append("-D__riscv_xtttensixbh=1")
        if file.suffix in CXX_SUFFIXES:
            options += ["-nostdinc++", *(f"-isystem{path}" for path in self.cxx_include())]
        return [*options, f"-isystem{self.include}"]

    def libraries(self) -> list[str]:
        """The linker's arguments that say where the C library is."""
        return [f"-L{self.library}", f"-L{self.libgcc}"]

    def tool(self, name: str) -> Path | None:
        """Another program of the same toolchain (`g++`, `objcopy`, `gcov`); None when it is not installed."""
        found = shutil.which(self.gcc.name.removesuffix("gcc") + name, path=str(self.gcc.parent)) or shutil.which(
            self.gcc.name.removesuffix("gcc") + name
        )
        return Path(found) if found else None

    def cxx_include(self) -> tuple[Path, ...]:
        """Directories with the C++ standard library's headers, in search order.

        Debian has none for RISC-V; those of the ARM newlib package are the same text for the same GCC (B19).

        Raises:
            MissingTool: none for this GCC.
        """
        for root in CXX_ROOTS:
            for version in sorted(root.glob(f"{self.version[0]}.*"), reverse=True):
                target = version / "arm-none-eabi"
                if (version / "array").is_file() and (target / "bits" / "c++config.h").is_file():
                    return version, target, version / "backward"
        raise MissingTool(
            f"no C++ standard headers for GCC {self.version[0]}",
            remedy="apt install libstdc++-arm-none-eabi-newlib (its headers serve RISC-V too); C needs none of it",
        )


def choose_compiler(gcc: str | None = None, sfpi: str | Path | None = None) -> Toolchain | Sfpi:
    """The compiler for kernels: the vendor's where it is, unless a stock one is named.

    Args:
        gcc: name or path of a stock C driver, or None.
        sfpi: directory of the vendor's compiler, or None.

    Raises:
        MissingTool: what is named is not there, or no compiler at all is.
    """
    if gcc is not None and sfpi is not None:
        raise MissingTool("two compilers are named", remedy="give --gcc for a stock one or --sfpi for the vendor's")
    if gcc is None:
        vendor = find_sfpi(sfpi)
        if vendor is not None:
            return vendor
    return find_toolchain(gcc or GCC)


@lru_cache(maxsize=4)
def find_toolchain(gcc: str = GCC) -> Toolchain:
    """The stock toolchain of this machine.

    Args:
        gcc: name on the PATH or path of the C driver.

    Raises:
        MissingTool: the compiler, its 32-bit libgcc or picolibc is not installed; the remedy names the package.
    """
    path = shutil.which(gcc)
    if path is None:
        raise MissingTool(
            f"the RISC-V compiler {gcc} is not installed",
            remedy="apt install gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf, or name a compiler with --gcc",
        )
    try:
        version = tuple(int(part) for part in _ask(path, "-dumpfullversion").split("."))
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise MissingTool(
            f"{gcc} is not GCC: it does not tell its version ({error})",
            remedy="name a GCC for RISC-V with --gcc, such as riscv64-unknown-elf-gcc",
        ) from None
    libgcc = Path(_ask(path, f"-march={_LIBRARY_MARCH}", f"-mabi={ABI}", "-print-libgcc-file-name"))
    if not libgcc.is_file() or _LIBRARY_MARCH not in libgcc.parts:
        raise MissingTool(
            f"{gcc} has no libgcc for {_LIBRARY_MARCH}/{ABI}",
            remedy="use Debian's gcc-riscv64-unknown-elf, which has the 32-bit libraries",
        )
    for root in PICOLIBC_ROOTS:
        for library in (root / "lib" / "release", root / "lib"):
            if (library / _LIBRARY_MARCH / ABI / "libc.a").is_file() and (root / "include" / "string.h").is_file():
                return Toolchain(
                    Path(path).absolute(),
                    version,
                    libgcc.parent,
                    root / "include",
                    library / _LIBRARY_MARCH / ABI,
                )
    raise MissingTool(
        "the C library picolibc is not installed for RISC-V",
        remedy="apt install picolibc-riscv64-unknown-elf",
    )


def _ask(gcc: str, *question: str) -> str:
    return subprocess.run([gcc, *question], capture_output=True, text=True, check=True).stdout.strip()
