"""A small convolutional network in ttnn, beside the same network in torch.

Two convolutions with ReLU, each followed by max pooling, and a linear layer: 16 by 16 pixels to ten classes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import ttnn

from tools import compare, get, put

BATCH, SIZE, CHANNELS, CLASSES = 2, 16, (3, 16, 32), 10


def weights() -> dict[str, torch.Tensor]:
    """Random weights, rounded to bfloat16, which both sides use."""
    made: dict[str, torch.Tensor] = {}
    for layer in (0, 1):
        inside, out = CHANNELS[layer : layer + 2]
        made[f"conv{layer}"] = torch.randn(out, inside, 3, 3) / (9 * inside) ** 0.5
        made[f"bias{layer}"] = torch.randn(out) / 10
    features = CHANNELS[2] * (SIZE // 4) ** 2
    made["linear"], made["linear_bias"] = torch.randn(features, CLASSES) / features**0.5, torch.randn(CLASSES) / 10
    return {name: values.bfloat16().float() for name, values in made.items()}


def on_torch(x: torch.Tensor, w: dict[str, torch.Tensor]) -> torch.Tensor:
    """The network in torch, float32; pixels as (batch, height, width, channels)."""
    x = x.permute(0, 3, 1, 2)
    for layer in (0, 1):
        x = F.max_pool2d(F.relu(F.conv2d(x, w[f"conv{layer}"], w[f"bias{layer}"], padding=1)), 2)
    return x.permute(0, 2, 3, 1).reshape(BATCH, -1) @ w["linear"] + w["linear_bias"]


def convolve(x: ttnn.Tensor, w: dict[str, torch.Tensor], layer: int, size: int, device: ttnn.Device) -> ttnn.Tensor:
    """Convolution, ReLU and pooling of a layer: `size` by `size` pixels to half of that."""
    inside, out = CHANNELS[layer : layer + 2]
    x = ttnn.conv2d(
        input_tensor=x,
        weight_tensor=ttnn.from_torch(w[f"conv{layer}"], dtype=ttnn.bfloat16),
        bias_tensor=ttnn.from_torch(w[f"bias{layer}"].reshape(1, 1, 1, -1), dtype=ttnn.bfloat16),
        device=device,
        in_channels=inside,
        out_channels=out,
        batch_size=BATCH,
        input_height=size,
        input_width=size,
        kernel_size=(3, 3),
        stride=(1, 1),
        padding=(1, 1),
        conv_config=ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16),
    )
    x = ttnn.to_layout(ttnn.relu(ttnn.to_memory_config(x, ttnn.DRAM_MEMORY_CONFIG)), ttnn.ROW_MAJOR_LAYOUT)
    return ttnn.max_pool2d(
        input_tensor=ttnn.reshape(x, (1, 1, BATCH * size * size, out)),
        batch_size=BATCH,
        input_h=size,
        input_w=size,
        channels=out,
        kernel_size=[2, 2],
        stride=[2, 2],
        padding=[0, 0],
        dilation=[1, 1],
    )


def on_device(x: torch.Tensor, w: dict[str, torch.Tensor], device: ttnn.Device) -> ttnn.Tensor:
    """The network in ttnn, bfloat16."""
    tensor = ttnn.from_torch(x, dtype=ttnn.bfloat16, layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
    size = SIZE
    for layer in (0, 1):
        tensor = convolve(tensor, w, layer, size, device)
        size //= 2
    tensor = ttnn.to_layout(ttnn.to_memory_config(tensor, ttnn.DRAM_MEMORY_CONFIG), ttnn.ROW_MAJOR_LAYOUT)
    features = ttnn.to_layout(ttnn.reshape(tensor, (BATCH, size * size * CHANNELS[2])), ttnn.TILE_LAYOUT)
    return ttnn.linear(features, put(w["linear"], device), bias=put(w["linear_bias"].reshape(1, -1), device))


def main() -> None:
    """Run the network on both and compare."""
    torch.manual_seed(2)
    w, x = weights(), torch.randn(BATCH, SIZE, SIZE, CHANNELS[0]).bfloat16().float()
    device = ttnn.open_device(device_id=0, l1_small_size=24576)
    try:
        compare("convolutional network", get(on_device(x, w, device)), on_torch(x, w))
    finally:
        ttnn.close_device(device)


if __name__ == "__main__":
    main()
