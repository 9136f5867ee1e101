"""`bhemu cc`: kernels in C, C++ and assembly, with the vendor's compiler or a stock one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bhemu.cli.options import takes_options
from bhemu.cli.report import number, refuse_usage

if TYPE_CHECKING:
    from bhemu.cc import LlkTree

#: A compiler's arguments are not ours to check: unknown options go to it as they are.
CONTEXT = {"ignore_unknown_options": True, "allow_extra_args": True}
HEADERS = ("instructions", "fields", "bhemu")


@dataclass(frozen=True)
class CompilerOptions:
    """What the command line says about a kernel to compile."""

    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCES... -o FILE [COMPILER OPTIONS...]",
            help="C, C++ and assembly (.S) files, the ELF file to write, and GCC's options such as -O3, -DNAME, -Idir.",
            show_default=False,
        ),
    ] = None
    core: Annotated[
        str | None, typer.Option("--core", help="B, NC, T0, T1 or T2: link address, stack and macros. Default: B.")
    ] = None
    text: Annotated[
        str | None, typer.Option("--text", metavar="ADDRESS", help="Link there, not at the core's reset pc.")
    ] = None
    length: Annotated[
        str | None, typer.Option("--length", metavar="BYTES", help="Room in L1. Default: to the next core's start.")
    ] = None
    llk: Annotated[
        str | None,
        typer.Option("--llk", metavar="PATH", help="Tenstorrent's LLK headers; 'auto': BHEMU_LLK or installed ttnn."),
    ] = None
    llk_core: Annotated[
        str | None,
        typer.Option("--llk-core", metavar="PART", help="unpack, math or pack: LLK headers for that part."),
    ] = None
    sfpi: Annotated[
        Path | None,
        typer.Option(
            "--sfpi",
            metavar="DIR",
            help="Tenstorrent's compiler. Default: TT_METAL_HOME/runtime/sfpi or /opt/tenstorrent/sfpi, where it is.",
        ),
    ] = None
    gcc: Annotated[
        str | None, typer.Option("--gcc", help="A stock C driver. Default without sfpi: riscv64-unknown-elf-gcc.")
    ] = None
    verbose: Annotated[bool, typer.Option("--verbose", help="Print each command before it runs.")] = False
    print_header: Annotated[
        str | None,
        typer.Option("--print-header", metavar="NAME", help=f"Print a header and stop: {', '.join(HEADERS)}."),
    ] = None
    vendor_tools: Annotated[
        Path | None,
        typer.Option("--vendor-tools", metavar="DIR", help="Write riscv-tt-elf-* launchers for LLK's test harness."),
    ] = None
    llk_home: Annotated[
        Path | None,
        typer.Option(
            "--llk-home", metavar="DIR", help="Write a view of the LLK tree that has those launchers (LLK_HOME)."
        ),
    ] = None
    metal_root: Annotated[
        Path | None,
        typer.Option("--metal-root", metavar="DIR", help="The same of tt-metal in a ttnn package, for ttnn programs."),
    ] = None
    profiled: Annotated[
        bool, typer.Option("--profiled", help="With --metal-root: kernels have tt-metal's device profiler.")
    ] = False


@takes_options(CompilerOptions)
def cc(o: CompilerOptions) -> None:
    """Compile a kernel for one RISC-V core.

    With Tenstorrent's sfpi, where it is installed, else with Debian's gcc-riscv64-unknown-elf.

    bhemu cc kernel.c -o kernel.elf --core T0 -O3

    Everything that is not an option of bhemu cc goes to the compiler; after `--`, everything does.
    Sources may include <bhemu.h>, and with --llk or --llk-core Tenstorrent's LLK headers.
    Kernels in the vector language of the SFPU need sfpi.
    """
    from bhemu.cc import compile_kernel, find_llk, write_llk_home, write_metal_root, write_vendor_tools
    from bhemu.cc.toolchain import GCC, choose_compiler

    sources, target, options = split_arguments(o.arguments or [])
    actions = [name for name, given in _actions(o.print_header, o.vendor_tools, o.llk_home, o.metal_root) if given]
    if o.profiled and o.metal_root is None:
        refuse_usage("--profiled is for --metal-root", "name the directory of a view: --metal-root DIR --profiled")
    if actions:
        if len(actions) > 1 or sources or target:
            refuse_usage(f"{actions[0]} does nothing else", "give it alone, and compile with another command")
        if o.print_header is not None:
            typer.echo(_header(o.print_header), nl=False)
        elif o.vendor_tools is not None:
            typer.echo(f"{write_vendor_tools(o.vendor_tools, gcc=o.gcc or GCC)}")
        elif o.llk_home is not None:
            home = write_llk_home(o.llk_home, find_llk(_llk_path(o.llk)), choose_compiler(o.gcc, o.sfpi))
            typer.echo(f"export LLK_HOME={home}")
        elif o.metal_root is not None:
            compiler = choose_compiler(o.gcc, o.sfpi)
            root = write_metal_root(o.metal_root, find_llk(_llk_path(o.llk)), compiler, profiled=o.profiled)
            typer.echo(f"export TT_METAL_RUNTIME_ROOT={root}\nexport TT_METAL_CACHE={root / 'cache'}")
        return
    if not sources:
        refuse_usage("no source is given", "for example: bhemu cc kernel.c -o kernel.elf")
    if target is None:
        refuse_usage("no output file is given", "for example: -o kernel.elf")
    chosen, tree = _core_and_tree(o.core, o.llk, o.llk_core)
    kernel = compile_kernel(
        sources,
        target,
        core=chosen,
        text=None if o.text is None else number(o.text, "--text"),
        length=None if o.length is None else number(o.length, "--length"),
        options=options,
        llk=tree,
        gcc=o.gcc,
        sfpi=o.sfpi,
        log=(lambda line: typer.echo(line, err=True)) if o.verbose else None,
    )
    if kernel.warnings:
        typer.echo(kernel.warnings, err=True, nl=False)
    built_by = f", sfpi {kernel.sfpi}" if kernel.sfpi else ""
    typer.echo(f"{kernel.path}: core {kernel.core}, entry 0x{kernel.origin:X}{built_by}")


_WITH_VALUE = {
    *("-I", "-D", "-U", "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-isysroot", "-x", "-B"),
    *("-iprefix", "-iwithprefix", "-MF", "-MT", "-MQ", "-aux-info", "-dumpbase", "-dumpdir", "-wrapper", "--param"),
    *("-L", "-l", "-T", "-u", "-z", "-e", "-Xlinker", "-Xassembler", "-Xpreprocessor"),
}
"""GCC's options whose value is the next argument."""
_STOPS = ("-c", "-S", "-E", "-M", "-MM", "-shared", "-r")


def split_arguments(arguments: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Sources, output file and compiler options, from arguments in the compiler's own order."""
    sources: list[str] = []
    options: list[str] = []
    target: str | None = None
    rest = iter(arguments)
    for argument in rest:
        if argument == "-o" or argument.startswith("-o"):
            if target is not None:
                refuse_usage("-o is given twice", "one kernel is one file")
            target = argument[2:] or _value_of(argument, rest)
        elif argument in _STOPS:
            refuse_usage(
                f"{argument} gives no kernel",
                "bhemu cc compiles and links; to stop earlier, call the compiler that --verbose shows",
            )
        elif argument in _WITH_VALUE:
            options += [argument, _value_of(argument, rest)]
        elif argument.startswith("-"):
            options.append(argument)
        else:
            sources.append(argument)
    return sources, target, options


def _value_of(option: str, rest: object) -> str:
    value = next(rest, None)  # type: ignore[call-overload]
    if value is None:
        refuse_usage(f"{option} needs a value", f"for example: {option} NAME")
    return str(value)


def _actions(
    header: str | None, tools: Path | None, home: Path | None, root: Path | None
) -> tuple[tuple[str, bool], ...]:
    return (
        ("--print-header", header is not None),
        ("--vendor-tools", tools is not None),
        ("--llk-home", home is not None),
        ("--metal-root", root is not None),
    )


def _llk_path(llk: str | None) -> str | None:
    return None if llk in (None, "auto") else llk


def _core_and_tree(core: str | None, llk: str | None, llk_core: str | None) -> tuple[str, LlkTree | None]:
    """The core to link for and the LLK tree, where one is wanted."""
    from bhemu.cc import find_llk
    from bhemu.cc.llk import PARTS

    if llk_core is not None:
        if llk_core not in PARTS:
            refuse_usage(f"--llk-core {llk_core!r} is not part of a kernel", f"parts are {', '.join(PARTS)}")
        if core is not None and core.upper() != PARTS[llk_core]:
            refuse_usage(f"{llk_core} runs on {PARTS[llk_core]}, not on {core}", "give --core or --llk-core, not both")
        core = PARTS[llk_core]
    wanted = llk is not None or llk_core is not None
    return core or "B", find_llk(_llk_path(llk)) if wanted else None


def _header(name: str) -> str:
    from importlib import resources

    from bhemu.cc import fields_header, instructions_header

    if name == "instructions":
        return instructions_header()
    if name == "fields":
        return fields_header()
    if name == "bhemu":
        return resources.files("bhemu.cc").joinpath("data/bhemu.h").read_text()
    return refuse_usage(f"no header is called {name!r}", f"headers are {', '.join(HEADERS)}")
