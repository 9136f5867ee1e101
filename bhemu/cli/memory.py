"""`--write` and `--read` of `bhemu run kernel.elf`: files into the memory of a tile, and memory into files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bhemu.cli.report import number, refuse_usage

if TYPE_CHECKING:
    from rich.console import Console

    from bhemu.api.tile_programs import TilePrograms
    from bhemu.api.tile_view import TileView
    from bhemu.formats import TileShape


PLAIN = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "i8": "<i1", "i16": "<i2", "i32": "<i4", "f32": "<f4"}
"""Numbers as C has them, row by row; other names are Tensix formats in tiles."""
WRITE = "ADDR=FILE[:FORMAT[:SHAPE[:TILE]]]"
READ = "ADDR:SHAPE:FORMAT[:TILE]=FILE"
READ_BYTES = "ADDR:BYTES=FILE"


@dataclass(frozen=True)
class Transfer:
    """One `--write` or `--read`.

    Attributes:
        option: as the user wrote it, for messages.
        place: address, symbol or core.symbol.
        file: the other end.
        format: name of a Tensix format or of `PLAIN`; None for bytes as they are.
        shape: None where the file says it; for `--read` of bytes, their number.
        tile: 32x32 and so on, `row-major`, or None for the default.
    """

    option: str
    place: str
    file: Path
    format: str | None
    shape: tuple[int, ...] | None
    tile: str | None


def parse_write(text: str) -> Transfer:
    """`ADDR=FILE[:FORMAT[:SHAPE[:TILE]]]`."""
    place, equals, rest = text.partition("=")
    parts = rest.split(":")
    if not equals or not place or not parts[0] or len(parts) > 4:
        refuse_usage(f"--write {text!r} is not of the form {WRITE}", "for example --write 0x21000=a.npy:bf16")
    file, form, shape, tile = [*parts, "", "", ""][:4]
    return Transfer(
        f"--write {text}", place, Path(file), form or None, shape_of(shape) if shape else None, tile or None
    )


def parse_read(text: str) -> Transfer:
    """`ADDR:SHAPE:FORMAT[:TILE]=FILE`, or `ADDR:BYTES=FILE`."""
    what, equals, file = text.rpartition("=")
    parts = what.split(":")
    if not equals or not file or not all(parts) or not 2 <= len(parts) <= 4:
        refuse_usage(
            f"--read {text!r} is neither of the form {READ} nor {READ_BYTES}",
            "for example --read 0x22000:32x32:bf16=c.npy",
        )
    place, shape, form, tile = [*parts, "", ""][:4]
    return Transfer(f"--read {text}", place, Path(file), form or None, shape_of(shape), tile or None)


def shape_of(text: str) -> tuple[int, ...]:
    """Dimensions in `64x96` or `64,96`."""
    return tuple(number(part, "dimension") for part in text.lower().replace(",", "x").split("x"))


def _region(tile: TileView, names: TilePrograms, transfer: Transfer, size: int) -> tuple[int, Any]:
    """Address and bytes of the memory that a transfer is about, as a writable array."""
    from bhemu.errors import MemoryError_
    from bhemu.loader.boot import LOCAL_RAM, core_number
    from bhemu.machine.agents import CORE_NAMES

    core, dot, rest = transfer.place.partition(".")
    named = dot and core.upper() in CORE_NAMES
    address_text = rest if named else transfer.place
    if address_text[:1].isdigit():
        address = number(address_text, "address")
    else:
        address = names.address_of(transfer.place)
    memory, start, what = tile.l1, 0, "L1"
    if address >= LOCAL_RAM:
        owner = core if named else names.owner_of(transfer.place)
        if owner is None:
            raise MemoryError_(
                f"{transfer.option}: {address:#x} lies in local RAM, which each core has for itself",
                remedy=f"say whose: for example B.{address:#x}",
            )
        memory, start = tile.cores[core_number(owner)].local_ram, LOCAL_RAM
        what = f"the local RAM of core {owner.upper()}"
    at = address - start
    if at < 0 or at + size > len(memory):
        raise MemoryError_(
            f"{transfer.option}: {size} bytes from {address:#x} do not lie in {what}, "
            f"{start:#010x}..{start + len(memory) - 1:#010x}",
            remedy="choose a lower address or fewer bytes",
        )
    return address, memory[at : at + size]


def write(tile: TileView, names: TilePrograms, transfer: Transfer) -> None:
    """Put a file into memory of a tile; `names` are those of its programs."""
    content = content_of(transfer)
    address, memory = _region(tile, names, transfer, len(content))
    names.check_data(address, len(content), transfer.option)
    memory[:] = content


def content_of(transfer: Transfer) -> Any:
    """The bytes, uint8 [n], that a `--write` puts into memory."""
    import numpy as np

    from bhemu.errors import FormatError
    from bhemu.formats.files import load

    if transfer.file.suffix != ".npy":
        if transfer.format is not None:
            raise FormatError(
                f"{transfer.option}: {transfer.file} is not a .npy file, so its bytes go into memory as they are",
                remedy="omit the format, or make a .npy file",
            )
        if not transfer.file.is_file():
            raise FormatError(f"{transfer.file}: no such file", remedy="name a .npy file or a file of bytes")
        return np.frombuffer(transfer.file.read_bytes(), np.uint8)
    array = load(transfer.file)
    if transfer.shape is not None and transfer.shape != array.shape:
        raise FormatError(
            f"{transfer.option}: {transfer.file} has shape {' x '.join(map(str, array.shape))}",
            remedy="omit the shape, or reshape the array",
        )
    if transfer.format is None:
        values = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        return np.frombuffer(values.tobytes(), np.uint8)
    if transfer.format in PLAIN:
        _no_tile(transfer)
        return np.frombuffer(_plain(array, transfer).tobytes(), np.uint8)
    from bhemu.formats import encode

    return encode(array, transfer.format, tile_shape=tile_shape_of(transfer.tile))


def _plain(array: Any, transfer: Transfer) -> Any:
    import numpy as np

    from bhemu.errors import FormatError

    assert transfer.format is not None
    kind = np.dtype(PLAIN[transfer.format])
    with np.errstate(all="ignore"):
        values = array.astype(kind)
        exact = kind.kind == "f" or np.array_equal(values.astype(array.dtype), array)
    if not exact:
        raise FormatError(
            f"{transfer.option}: {transfer.file} has values that {transfer.format} cannot hold",
            remedy="choose a wider type, or convert the array yourself",
        )
    return values


def tile_shape_of(text: str | None) -> TileShape | None:
    """The shape of tiles in `32x32`, which is the default; None for `row-major`."""
    from bhemu.formats.layout import check_tile_shape

    if text == "row-major":
        return None
    return check_tile_shape(shape_of(text)) if text else (32, 32)  # type: ignore[arg-type]


def _no_tile(transfer: Transfer) -> None:
    if transfer.tile is not None:
        refuse_usage(
            f"{transfer.option}: {transfer.format} has no tiles", "tile shapes are for Tensix formats such as bf16"
        )


def check_place(tile: TileView, names: TilePrograms, transfer: Transfer) -> None:
    """Refuse a `--read` from where no memory is, before anything runs."""
    _region(tile, names, transfer, check_read(transfer))


def check_read(transfer: Transfer) -> int:
    """The number of bytes that a `--read` is about; refuses what cannot be read, before anything runs."""
    import numpy as np

    from bhemu.errors import FormatError
    from bhemu.formats import tensor_size

    assert transfer.shape is not None
    if any(size < 1 for size in transfer.shape):
        refuse_usage(f"{transfer.option}: a shape has numbers from 1 on", "for example 32x32")
    if transfer.format is None:
        if len(transfer.shape) != 1:
            refuse_usage(f"{transfer.option}: a shape needs a format", f"the form is {READ}")
        if transfer.file.suffix == ".npy":
            raise FormatError(
                f"{transfer.option}: a .npy file needs a format", remedy=f"say for example ADDR:{transfer.shape[0]}:u8"
            )
        return transfer.shape[0]
    if transfer.file.suffix != ".npy":
        raise FormatError(
            f"{transfer.option}: tensors are saved as .npy files", remedy="name the file .npy, or omit the format"
        )
    if transfer.format in PLAIN:
        _no_tile(transfer)
        return int(np.prod(transfer.shape)) * np.dtype(PLAIN[transfer.format]).itemsize
    return tensor_size(transfer.shape, transfer.format, tile_shape=tile_shape_of(transfer.tile))


def read(tile: TileView, names: TilePrograms, transfer: Transfer) -> Any:
    """What a `--read` saves: an array, or bytes."""
    return decoded(transfer, _region(tile, names, transfer, check_read(transfer))[1].copy())


def decoded(transfer: Transfer, content: Any) -> Any:
    """What a `--read` makes of bytes, uint8 [n]."""
    import numpy as np

    from bhemu.formats import decode
    from bhemu.formats.files import portable

    assert transfer.shape is not None
    if transfer.format is None:
        return content.tobytes()
    if transfer.format in PLAIN:
        return np.frombuffer(content.tobytes(), PLAIN[transfer.format]).reshape(transfer.shape)
    return portable(decode(content, transfer.format, transfer.shape, tile_shape=tile_shape_of(transfer.tile)))


def print_transfers(console: Console, writes: list[Transfer], reads: list[Transfer]) -> None:
    """Say which files went where."""
    for transfer in writes:
        console.print(f"{transfer.place} from {transfer.file}", markup=False)
    for transfer in reads:
        console.print(f"{transfer.place} written to {transfer.file}", markup=False)
    console.print()


def transfers_as_json(writes: list[Transfer], reads: list[Transfer]) -> dict[str, list[dict[str, Any]]]:
    """The same for `--json`."""
    return {
        name: [{"place": one.place, "file": str(one.file), "format": one.format} for one in transfers]
        for name, transfers in (("written", writes), ("read", reads))
    }
