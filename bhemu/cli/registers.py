"""`bhemu regs`: the configuration registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bhemu.cli.report import REFUSED, number, output, plain_table, print_json, refuse_usage

if TYPE_CHECKING:
    from bhemu.isa import RegisterField
    from bhemu.isa.registers import Space


def regs(
    what: Annotated[
        str | None, typer.Argument(metavar="[WORD | TEXT]", help="A word (ADDR32), or text in a name or description.")
    ] = None,
    value: Annotated[
        str | None, typer.Argument(metavar="[VALUE]", help="Value of the word, to be taken apart.")
    ] = None,
    thread: Annotated[
        bool, typer.Option("--thread", help="WORD is a ThreadConfig entry (SETC16), not a word of Config.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the map of configuration registers, search it, or take the value of a word apart.

    bhemu regs: the whole map. bhemu regs 70: the fields of a word. bhemu regs 70 0x00100151: their values.
    bhemu regs ReLU: fields whose name or description contains a text.
    """
    from bhemu.isa import decode_word, fields_of_word, search

    space: Space = "thread" if thread else "config"
    values: list[int] | None = None
    if what == "":
        refuse_usage("an empty text", "give a word, a part of a name, or nothing for the whole map")
    if what is not None and what[0].isdigit():
        word = number(what, "word")
        fields = list(fields_of_word(space, word))
        if value is not None:
            bits = number(value, "value")
            top = 16 if thread else 32
            if not 0 <= bits < 1 << top:
                refuse_usage(f"value {value} does not fit in {top} bits", f"{space} words hold {top} bits")
            values = [field_value for _, field_value in decode_word(space, word, bits)]
            unknown = bits & ~sum(field.mask for field in fields)
            if unknown:
                typer.echo(f"bits {unknown:#x} of word {word} belong to no field", err=True)
    elif value is not None:
        refuse_usage(f"{what!r} is no word", "a VALUE is taken apart for the number of a word: bhemu regs 70 0x151")
    else:
        fields = [field for field in search(what or "") if what is not None or not thread or field.space == "thread"]
    if as_json:
        print_json([_as_json(field, values[i] if values else None) for i, field in enumerate(fields)])
    else:
        _print(fields, values)
    if not fields:
        if not as_json:
            typer.echo(f"bhemu: no field for {what!r}", err=True)
        raise typer.Exit(REFUSED)


def _as_json(field: RegisterField, value: int | None) -> dict[str, object]:
    content: dict[str, object] = {
        name: getattr(field, name) for name in ("space", "word", "lsb", "width", "name", "access", "description")
    }
    return content if value is None else {**content, "value": value}


def _print(fields: list[RegisterField], values: list[int] | None) -> None:
    from rich.text import Text

    middle = ["value", "hex"] if values is not None else []
    table = plain_table("space", "word", "bits", "field", *middle, "meaning", right=("word", "bits", "value", "hex"))
    for i, field in enumerate(fields):
        shown = [str(values[i]), f"{values[i]:#x}"] if values is not None else []
        bits = f"{field.msb}:{field.lsb}" if field.width > 1 else str(field.lsb)
        table.add_row(field.space, str(field.word), bits, field.name, *shown, Text(field.description))
    if fields:
        output().print(table)
