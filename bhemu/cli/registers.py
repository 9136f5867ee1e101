"""`bhemu regs`: configuration registers, and the registers that the tile's memory map holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bhemu.cli.options import AsJson
from bhemu.cli.report import REFUSED, number, output, plain_table, print_json, refuse_usage

if TYPE_CHECKING:
    from bhemu.isa import RegisterField, TileRegister
    from bhemu.isa.registers import Space


def regs(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[WORD | ADDRESS | TEXT]", help="A word (ADDR32), an address, or text in a name or description."
        ),
    ] = None,
    value: Annotated[
        str | None, typer.Argument(metavar="[VALUE]", help="Value of the register, to be decoded into fields.")
    ] = None,
    thread: Annotated[
        bool, typer.Option("--thread", help="WORD is a ThreadConfig entry (SETC16), not a word of Config.")
    ] = False,
    tile: Annotated[bool, typer.Option("--tile", help="Show all registers of the tile with their addresses.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the map of configuration registers, search it and the tile's registers, or take a value apart.

    bhemu regs: the whole map. bhemu regs 70: the fields of a word. bhemu regs 70 0x00100151: their values.
    bhemu regs ReLU: fields and registers whose name or description contains a text. bhemu regs 0xffb121b0 0x47800: the
    register at an address, and its fields' values.
    """
    from bhemu.isa import fields_of_word, region, search, search_tile_registers

    space: Space = "thread" if thread else "config"
    fields: list[RegisterField] = []
    registers: list[TileRegister] = []
    bits: int | None = None
    if what == "":
        refuse_usage("an empty text", "give a word, a part of a name, or nothing for the whole map")
    if what is not None and what[0].isdigit():
        place = word = number(what, "word")
        if place >= region("local_ram").base:
            registers, space, word = _at(place)
        if not registers:
            fields = list(fields_of_word(space, word))
        if value is not None:
            bits = number(value, "value")
            masks = [*(f.mask for f in fields), *(b.in_place for row in registers for b in row.fields)]
            _check_value(bits, value, what, masks, 16 if space == "thread" else 32)
    elif value is not None:
        refuse_usage(f"{what!r} is not a word", "a VALUE is decoded for the number of a word: bhemu regs 70 0x151")
    elif tile:
        registers = search_tile_registers(what or "")
    else:
        fields = [field for field in search(what or "") if what is not None or not thread or field.space == "thread"]
        registers = search_tile_registers(what) if what is not None else []
    if as_json:
        print_json([_as_json(field, bits) for field in fields] + [_register_as_json(row, bits) for row in registers])
    else:
        _print(fields, bits)
        _print_registers(registers, bits, details=what is not None and what[0].isdigit())
    if not fields and not registers:
        if not as_json:
            typer.echo(f"bhemu: no field for {what!r}", err=True)
        raise typer.Exit(REFUSED)


def _at(address: int) -> tuple[list[TileRegister], Space, int]:
    """The registers at an address, or space and word of configuration that it shows."""
    from bhemu.errors import AssemblyError
    from bhemu.isa import THREAD_WORDS, registers_at

    found = list(registers_at(address))
    if not found:
        raise AssemblyError(f"there is no register at {address:#x}", remedy="bhemu regs --tile lists them")
    register, word = found[0]
    if register.block != "config":
        return [register], "config", 0
    return ([], "thread", word % THREAD_WORDS) if register.name == "THREAD_CONFIG" else ([], "config", word)


def _check_value(bits: int, value: str, what: str, masks: list[int], width: int) -> None:
    """Refuse a value that does not fit, and say which of its bits mean nothing."""
    if not 0 <= bits < 1 << width:
        refuse_usage(f"value {value} does not fit in {width} bits", f"{what} holds {width} bits")
    unknown = bits & ~sum(masks)
    if unknown:
        typer.echo(f"bits {unknown:#x} of word {what} belong to no field", err=True)


def _as_json(field: RegisterField, bits: int | None) -> dict[str, object]:
    content: dict[str, object] = {
        name: getattr(field, name) for name in ("space", "word", "lsb", "width", "name", "access", "description")
    }
    return content if bits is None else {**content, "value": (bits & field.mask) >> field.lsb}


def _register_as_json(row: TileRegister, bits: int | None) -> dict[str, object]:
    content: dict[str, object] = {
        name: getattr(row, name) for name in ("block", "address", "offset", "name", "access", "kind", "description")
    }
    fields = [
        {"name": field.name, "lsb": field.lsb, "msb": field.msb}
        | ({} if bits is None else {"value": bits >> field.lsb & field.mask})
        for field in row.fields
    ]
    return {**content, "count": len(row.offsets), "fields": fields}


def _bits(msb: int, lsb: int) -> str:
    return f"{msb}:{lsb}" if msb > lsb else str(lsb)


def _print(fields: list[RegisterField], bits: int | None) -> None:
    from rich.text import Text

    if not fields:
        return
    middle = ["value", "hex"] if bits is not None else []
    table = plain_table("space", "word", "bits", "field", *middle, "meaning", right=("word", "bits", "value", "hex"))
    for field in fields:
        value = 0 if bits is None else (bits & field.mask) >> field.lsb
        shown = [str(value), f"{value:#x}"] if middle else []
        place = _bits(field.msb, field.lsb)
        table.add_row(field.space, str(field.word), place, field.name, *shown, Text(field.description))
    output().print(table)


def _print_registers(registers: list[TileRegister], bits: int | None, *, details: bool) -> None:
    """A line a register; with details one for each of its fields, too."""
    from rich.text import Text

    if not registers:
        return
    middle = ["value", "hex"] if bits is not None else []
    between = ["bits", *middle] if details else []
    table = plain_table("address", "access", "kind", "register", *between, "meaning", right=("bits", "value", "hex"))
    for row in registers:
        count = f" ({len(row.offsets)} of them)" if row.repeat else ""
        empty = [""] * len(between)
        table.add_row(f"{row.address:#x}", row.access, row.kind, row.name, *empty, Text(row.description + count))
        for field in row.fields if details else ():
            value = 0 if bits is None else bits >> field.lsb & field.mask
            shown = [str(value), f"{value:#x}"] if middle else []
            table.add_row("", "", "", "", _bits(field.msb, field.lsb), *shown, field.name)
    output().print(table)
