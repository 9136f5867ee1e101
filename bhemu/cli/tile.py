"""`bhemu tile`: arrays as the bytes of L1 tiles, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bhemu.cli.memory import shape_of, tile_shape_of
from bhemu.cli.report import output, refuse_usage

if TYPE_CHECKING:
    from bhemu.formats.dump import View

app = typer.Typer(help="Convert .npy files to tile bytes and back, and look at tiles.", no_args_is_help=True)

Format = Annotated[str, typer.Option("--format", "-f", help="Datum format in L1: bf16, fp32, bfp8, int8, ...")]
Order = Annotated[str, typer.Option("--tile", help="Tile shape: 32x32, 16x32, 32x16, 16x16; or row-major.")]
Shape = Annotated[str, typer.Option("--shape", help="Shape of the tensor, for example 64x96.")]


def _read(path: Path) -> Any:
    import numpy as np

    from bhemu.errors import FormatError

    if not path.is_file():
        raise FormatError(f"{path}: no such file", remedy="name a file of tile bytes")
    return np.frombuffer(path.read_bytes(), np.uint8)


@app.command()
def encode(
    source: Annotated[Path, typer.Argument(metavar="ARRAY.npy")],
    target: Annotated[Path, typer.Argument(metavar="TILES.bin")],
    format: Format,
    tile: Order = "32x32",
    hardware: Annotated[
        bool, typer.Option("--hardware", help="Round as the packer does; otherwise to nearest even, as NumPy does.")
    ] = False,
    intermediate: Annotated[
        str | None, typer.Option(help="With --hardware: the packer's intermediate format, where there is a choice.")
    ] = None,
) -> None:
    """Write the bytes that an array has in L1."""
    from bhemu.cli.arrays import check_target, write_files
    from bhemu.formats import encode as encode_tensor
    from bhemu.formats.files import load

    check_target(target)
    data = encode_tensor(
        load(source),
        format,
        tile_shape=tile_shape_of(tile),
        rounding="hardware" if hardware else "nearest",
        intermediate=intermediate,
    )
    write_files({target: data.tobytes()})
    typer.echo(f"{target}: {data.size} bytes")


@app.command()
def decode(
    source: Annotated[Path, typer.Argument(metavar="TILES.bin")],
    target: Annotated[Path, typer.Argument(metavar="ARRAY.npy")],
    format: Format,
    shape: Shape,
    tile: Order = "32x32",
) -> None:
    """Read tile bytes into an array: floats are saved as float32, integers as they are."""
    from bhemu.cli.arrays import check_target, write_files
    from bhemu.formats import decode as decode_tensor
    from bhemu.formats.files import portable

    check_target(target)
    array = portable(decode_tensor(_read(source), format, shape_of(shape), tile_shape=tile_shape_of(tile)))
    write_files({target: array})
    typer.echo(f"{target}: {array.dtype} {' x '.join(map(str, array.shape))}")


@app.command()
def show(
    source: Annotated[Path, typer.Argument(metavar="TILES.bin | ARRAY.npy")],
    format: Format,
    tile: Order = "32x32",
    index: Annotated[int, typer.Option(min=0, help="Which tile of the file.")] = 0,
    faces: Annotated[list[int] | None, typer.Option("--face", help="Show only this face.")] = None,
    bits: Annotated[bool, typer.Option("--bits", help="Show the raw datums too (BFP: sign and magnitude).")] = False,
    picture: Annotated[
        Path | None, typer.Option("--png", help="Draw the values: blue below zero, red above, NaN yellow.")
    ] = None,
) -> None:
    """Print a tile face by face: values, raw datums, and for BFP the shared exponents."""
    from bhemu.cli.arrays import check_target, write_files
    from bhemu.errors import FormatError
    from bhemu.formats import DataFormat, read_tile, render_tile
    from bhemu.formats import decode as decode_tensor
    from bhemu.formats import encode as encode_tensor
    from bhemu.formats.files import load
    from bhemu.pictures.png import tile_picture

    tile_shape = tile_shape_of(tile)
    if tile_shape is None:
        refuse_usage("a row-major tensor has no tiles to show", "give a tile shape: --tile 32x32")
    if picture is not None:
        check_target(picture)
    chosen = DataFormat.parse(format)
    if source.suffix == ".npy":
        data = encode_tensor(load(source), chosen, tile_shape=tile_shape)
    else:
        data = _read(source)
    size = chosen.tile_bytes(tile_shape)
    if data.size % size or index >= data.size // size:
        raise FormatError(
            f"{source}: {data.size} bytes hold no {chosen.name} tile {index} of {size} bytes",
            remedy="check --format, --tile and --index",
        )
    content = data[index * size : (index + 1) * size]
    views: tuple[View, ...] = ("bits", "values") if bits else ("values",)
    text = render_tile(read_tile(content, chosen, tile_shape), views=views, faces=faces)
    output().print(text, markup=False, soft_wrap=True)
    if picture is not None:
        write_files({picture: tile_picture(decode_tensor(content, chosen, tile_shape, tile_shape=tile_shape))})
