"""`compile_kernel`: sources in C, C++ and assembly to one ELF file for one core."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from bhemu.cc.check import ATOMICS, check_instructions
from bhemu.cc.cores import Core, find_core, l1_region
from bhemu.cc.errors import CompileError
from bhemu.cc.header import fields_header, instructions_header
from bhemu.cc.llk import LlkTree, llk_options
from bhemu.cc.sfpi import CXX_SUFFIXES, KNOWN_RELEASE, Sfpi
from bhemu.cc.toolchain import Toolchain, choose_compiler
from bhemu.checks import checked
from bhemu.files import write_whole

C_SUFFIXES = (".c",)
ASM_SUFFIXES = (".S", ".sx")
OBJECT_SUFFIXES = (".o", ".a")
_SUFFIXES = (*C_SUFFIXES, *CXX_SUFFIXES, *ASM_SUFFIXES, *OBJECT_SUFFIXES)

_COMMON = ("-g", "-O2", "-ffreestanding", "-ffunction-sections", "-fdata-sections", "-Wall")
_CXX = (
    "-std=gnu++20",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-fno-use-cxa-atexit",
    "-fno-asynchronous-unwind-tables",
)
_LINK = (
    "-nostdlib",
    "-nostartfiles",
    "-static",
    "-Wl,--gc-sections",
    "-Wl,-z,max-page-size=16",
    "-Wl,--no-warn-rwx-segments",
)
_C = ("-Werror=implicit-function-declaration",)

SFPU_MARK = "bhemu_sfpu_compiler_needed"
"""Every declaration of our `sfpi.h` that cannot be compiled carries this name."""
_SFPU = re.compile(rf"{SFPU_MARK}|__builtin_rvtt_sfp\w*|error: (?:sfpi|lltt)\.h: No such file")

_NO_HEADER = re.compile(r"fatal error: .*: No such file or directory")
_OF_THE_VENDOR = re.compile(r"sfpi|__builtin_rvtt|unrecognized command-line option '-[fm]tt-")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that was built.

    Attributes:
        path: the ELF file.
        core: the core that it is linked for.
        origin: address in L1 of its first instruction.
        warnings: what the compiler printed.
        sfpi: release of the vendor's compiler that built it; None for a stock compiler.
    """

    path: Path
    core: str
    origin: int
    warnings: str
    sfpi: str | None = None


@checked
def compile_kernel(
    sources: Sequence[str | Path],
    output: str | Path,
    *,
    core: str = "B",
    text: int | None = None,
    length: int | None = None,
    options: Sequence[str] = (),
    llk: LlkTree | None = None,
    gcc: str | None = None,
    sfpi: str | Path | None = None,
    log: Callable[[str], None] | None = None,
) -> Kernel:
    """Compile and link a bare kernel.

    Args:
        sources: files in C (.c), C++ (.cpp, .cc, .cxx), assembly (.S), or objects and archives to link.
        output: the ELF file to write.
        core: B, NC, T0, T1 or T2: sets the link address, the stack and the `BHEMU_CORE...` macros.
        text: link there instead of at the core's reset pc; the program that starts the core must set its pc.
        length: most bytes of L1 that the kernel may take; see `bhemu.cc.cores.l1_region`.
        options: further arguments of the compiler, after ours, so that they win; -L, -l and -Wl, go to the link.
        llk: the LLK headers, for a source that includes them; `bhemu.cc.llk.find_llk` finds them.
        gcc: a stock C driver to use. By default the vendor's compiler, where `bhemu.cc.find_sfpi` finds it, else
            riscv64-unknown-elf-gcc.
        sfpi: directory of the vendor's compiler, which knows the vector language of the SFPU (`sfpi.h`).
        log: called with each command line before it runs.

    Returns:
        What was built, and with which compiler. The file has symbols `__bhemu_*` (docs: bhemu cc) and program headers
        whose p_paddr lie in L1.

    Raises:
        MissingTool: no compiler, C library or C++ headers.
        CompileError: a tool refused, or the code has instructions that the cores lack (LR/SC).
    """
    place = find_core(core)
    origin, room = l1_region(place, text, length)
    files = [_checked(Path(source)) for source in sources]
    if not files:
        raise CompileError("no source is given", remedy="name .c, .cpp or .S files")
    compiler = choose_compiler(gcc, sfpi)
    release = compiler.release if isinstance(compiler, Sfpi) else None
    compile_options, link_options = split_options(options)
    said: list[str] = []
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bhemu-cc-")))
        data = stack.enter_context(resources.as_file(resources.files("bhemu.cc").joinpath("data")))
        include = write_headers(work / "include")
        objects: list[Path] = []
        command: list[str | Path]
        for index, file in enumerate([data / "crt0.S", *files]):
            if file.suffix in OBJECT_SUFFIXES:
                objects.append(file)
                continue
            target = work / f"{index}-{file.stem}.o"
            flags = source_flags(file, place, compiler, data, include, llk)
            user = compile_options if index else []
            command = [compiler.gcc, *flags, *user, "-c", file, "-o", target]
            said.append(_run(command, f"{file.name} does not compile", log, release))
            objects.append(target)
        symbols = {
            "__bhemu_l1_origin": origin,
            "__bhemu_l1_length": room,
            "__bhemu_local_length": place.local_length,
            "__bhemu_stack_least": place.stack_least,
            "__bhemu_core": place.number,
        }
        built = work / "kernel.elf"
        command = [
            compiler.gcc,
            *compiler.machine(place),
            *_LINK,
            *(f"-Wl,--defsym={name}=0x{value:X}" for name, value in symbols.items()),
            f"-T{data / 'kernel.ld'}",
            *objects,
            *link_options,
            *compiler.libraries(),
            "-Wl,--start-group",
            "-lc",
            "-lgcc",
            "-Wl,--end-group",
            "-o",
            built,
        ]
        said.append(_run(command, f"{Path(output).name} does not link", log, release))
        image = built.read_bytes()
        check_instructions(image, Path(output).name)
        try:
            write_whole(Path(output), image)
        except OSError as error:
            raise CompileError(
                f"cannot write {output}: {error.strerror}", remedy="name a file in a directory that exists"
            ) from None
    return Kernel(Path(output), place.name, origin, "".join(said), release)


def write_headers(directory: Path) -> Path:
    """Write the generated headers into a new `directory`, and return it."""
    directory.mkdir(parents=True)
    (directory / "bhemu_instructions.h").write_text(instructions_header())
    (directory / "bhemu_fields.h").write_text(fields_header())
    return directory


def source_flags(
    file: Path, core: Core, compiler: Toolchain | Sfpi, data: Path, include: Path, llk: LlkTree | None
) -> list[str]:
    """The compiler's arguments for one source, without the user's."""
    flags = [*compiler.machine(core), *_COMMON, *core.defines]
    if file.suffix in CXX_SUFFIXES:
        flags += _CXX
    elif file.suffix in C_SUFFIXES:
        flags += _C
    ours = [f"-I{data}", f"-I{include}"]
    own = compiler.language(file, core, data, llk=llk is not None)
    if llk is None:
        return [*flags, *ours, *own]
    # The compiler's headers for the coprocessor come before those of the LLK.
    return [*flags, *llk_options(core), *own, *(f"-I{path}" for path in llk.include_dirs()), *ours]


_LINK_JOINED = ("-L", "-l", "-T", "-Wl,")
_LINK_SEPARATE = ("-L", "-l", "-T", "-u", "-z", "-Xlinker")


def split_options(options: Iterable[str]) -> tuple[list[str], list[str]]:
    """The user's compiler arguments as those for compiling and those for linking."""
    compile_options: list[str] = []
    link_options: list[str] = []
    waiting: list[str] | None = None
    for option in options:
        if waiting is not None:
            waiting.append(option)
            waiting = None
        elif option in _LINK_SEPARATE or option.startswith(_LINK_JOINED):
            link_options.append(option)
            waiting = link_options if option in _LINK_SEPARATE else None
        else:
            compile_options.append(option)
    return compile_options, link_options


def _checked(file: Path) -> Path:
    if not file.is_file():
        raise CompileError(f"{file}: no such file", remedy="name the kernel's sources")
    if file.suffix not in _SUFFIXES:
        raise CompileError(
            f"{file.name}: no language is known for {file.suffix or 'a name without suffix'}",
            remedy=f"suffixes are {', '.join(_SUFFIXES)}",
        )
    return file


def _run(command: Sequence[str | Path], failure: str, log: Callable[[str], None] | None, release: str | None) -> str:
    """Run a tool; what it printed when it succeeds, `CompileError` when it does not."""
    words = [str(word) for word in command]
    if log is not None:
        log(shlex.join(words))
    done = subprocess.run(words, check=False, capture_output=True, text=True, errors="replace")
    said = done.stdout + done.stderr
    if done.returncode == 0:
        return said
    raise explain(failure, said, release)


def explain(failure: str, said: str, release: str | None = None) -> CompileError:
    """The error for a tool that refused and printed `said`: with the reason first where we know it.

    Args:
        failure: what did not succeed.
        said: the tool's own words.
        release: of the vendor's compiler, when it is the tool.
    """
    if release is None and _SFPU.search(said):
        return CompileError(
            f"{failure}: it needs the vendor's SFPU compiler (sfpi)\n{said.rstrip()}",
            remedy="name an installed sfpi with --sfpi DIR or TT_METAL_HOME, or write the vector part with TTI_SFP... "
            "words",
            output=said,
        )
    remedy = None
    if "region `L1' overflowed" in said or "will not fit in region `L1'" in said:
        remedy = "give the kernel more room with --text ADDRESS (and --length), or build with -Os"
    elif "region `LOCAL'" in said or "bhemu: .data and .bss" in said:
        remedy = "put large data in L1 with BHEMU_L1, or make it const: constants stay in L1"
    elif "'#pragma GCC unroll' requires" in said:
        remedy = "the header needs a newer compiler than this one; name another with --gcc"
    elif "undefined reference to `__atomic_" in said:
        remedy = ATOMICS
    elif "undefined reference to `main'" in said:
        remedy = "define main(): the start-up code calls it"
    elif _NO_HEADER.search(said):
        remedy = "name the directory of the header with -I; those of the LLK come with --llk"
    elif release not in (None, KNOWN_RELEASE) and _OF_THE_VENDOR.search(said):
        remedy = f"this is sfpi {release}, and {KNOWN_RELEASE} is known to work: kernel and compiler must fit together"
    return CompileError(f"{failure}\n{said.rstrip()}", remedy=remedy, output=said)
