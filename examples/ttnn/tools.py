"""What the ttnn examples share: tensors to the device and back, and the comparison with torch."""

from __future__ import annotations

import torch
import ttnn

LEAST_PCC = 0.999


def put(values: torch.Tensor, device: ttnn.Device, dtype: ttnn.DataType = ttnn.bfloat16) -> ttnn.Tensor:
    """A tensor in tiles, in the device's DRAM."""
    return ttnn.from_torch(values, dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)


def get(tensor: ttnn.Tensor) -> torch.Tensor:
    """The numbers of a tensor of the device."""
    return ttnn.to_torch(tensor).float()


def compare(name: str, got: torch.Tensor, want: torch.Tensor) -> None:
    """Print the correlation (PCC) of a result with torch's.

    Raises:
        SystemExit: it is below 0.999, or a number is missing.
    """
    pair = torch.stack([got.flatten(), want.flatten()]).double()
    pcc = float(torch.corrcoef(pair)[0, 1])
    error = float((got - want).abs().max())
    print(f"{name:<28} PCC {pcc:.6f}   largest difference {error:.4f} of {float(want.abs().max()):.2f}")
    if not pcc >= LEAST_PCC:
        raise SystemExit(f"{name}: PCC {pcc} is below {LEAST_PCC}")
