"""`bhemu asm` and `bhemu disasm`: instruction text to words and back."""

from __future__ import annotations

from typing import Annotated

import typer

from bhemu.cli.report import number


def asm(
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...", help="Instructions, each quoted with its operands.")],
    ttinsn: Annotated[
        bool,
        typer.Option("--ttinsn", help="Print words as a RISC-V instruction stream carries them (rotated left by 2)."),
    ] = False,
) -> None:
    """Assemble instructions: bhemu asm "SETDMAREG 0x1234, 6" "TTI_SETADCXX(4, 15, 0)"."""
    from bhemu.isa import assemble_program, to_ttinsn

    words = [word for text in texts for word in assemble_program(text)]
    for word in words:
        typer.echo(f"0x{to_ttinsn(word) if ttinsn else word:08X}")


def disasm(
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="32-bit words, for example 0x5E803C00.")],
    ttinsn: Annotated[
        bool,
        typer.Option("--ttinsn", help="Words are as a RISC-V instruction stream carries them (rotated left by 2)."),
    ] = False,
    terse: Annotated[bool, typer.Option("--terse", help="Leave out operands that are zero.")] = False,
) -> None:
    """Disassemble instruction words."""
    from bhemu.isa import disassemble, from_ttinsn

    values = [number(text, "word") for text in words]
    lines = [disassemble(from_ttinsn(value) if ttinsn else value, terse=terse) for value in values]
    typer.echo("\n".join(lines))
