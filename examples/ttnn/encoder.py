"""A transformer's encoder block in ttnn, beside the same block in torch.

Layer norm, self-attention of four heads, and a feed-forward network with GELU, each with a residual connection.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import ttnn

from tools import compare, get, put

LENGTH, WIDTH, HEADS, HIDDEN = 64, 128, 4, 256


def weights() -> dict[str, torch.Tensor]:
    """Random weights, rounded to bfloat16, which both sides use."""
    shapes = {
        "qkv": (WIDTH, 3 * WIDTH),
        "out": (WIDTH, WIDTH),
        "up": (WIDTH, HIDDEN),
        "down": (HIDDEN, WIDTH),
    }
    made = {name: torch.randn(shape) / shape[0] ** 0.5 for name, shape in shapes.items()}
    for name, (_, columns) in shapes.items():
        made[f"{name}_bias"] = torch.randn(1, columns) / 10
    for norm in ("norm1", "norm2"):
        made[norm], made[f"{norm}_bias"] = 1 + torch.randn(1, WIDTH) / 10, torch.randn(1, WIDTH) / 10
    return {name: values.bfloat16().float() for name, values in made.items()}


def on_torch(x: torch.Tensor, w: dict[str, torch.Tensor]) -> torch.Tensor:
    """The block in torch, float32."""
    h = F.layer_norm(x, (WIDTH,), w["norm1"][0], w["norm1_bias"][0])
    q, k, v = (h @ w["qkv"] + w["qkv_bias"]).reshape(1, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
    attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(1, LENGTH, WIDTH)
    x = x + attended @ w["out"] + w["out_bias"]
    h = F.layer_norm(x, (WIDTH,), w["norm2"][0], w["norm2_bias"][0])
    return x + F.gelu(h @ w["up"] + w["up_bias"]) @ w["down"] + w["down_bias"]


def on_device(x: ttnn.Tensor, w: dict[str, ttnn.Tensor]) -> ttnn.Tensor:
    """The block in ttnn, bfloat16."""
    h = ttnn.layer_norm(x, weight=w["norm1"], bias=w["norm1_bias"], epsilon=1e-5)
    qkv = ttnn.linear(h, w["qkv"], bias=w["qkv_bias"])
    q, k, v = ttnn.transformer.split_query_key_value_and_split_heads(qkv, num_heads=HEADS, transpose_key=False)
    attended = ttnn.transformer.scaled_dot_product_attention(q, k, v, is_causal=False)
    attended = ttnn.transformer.concatenate_heads(attended)
    x = ttnn.add(x, ttnn.linear(attended, w["out"], bias=w["out_bias"]))
    h = ttnn.layer_norm(x, weight=w["norm2"], bias=w["norm2_bias"], epsilon=1e-5)
    h = ttnn.linear(h, w["up"], bias=w["up_bias"], activation="gelu")
    return ttnn.add(x, ttnn.linear(h, w["down"], bias=w["down_bias"]))


def main() -> None:
    """Run the block on both and compare."""
    torch.manual_seed(1)
    w, x = weights(), torch.randn(1, LENGTH, WIDTH).bfloat16().float()
    device = ttnn.open_device(device_id=0)
    try:
        placed = {name: put(values, device) for name, values in w.items()}
        compare("encoder block", get(on_device(put(x, device), placed)), on_torch(x, w))
    finally:
        ttnn.close_device(device)


if __name__ == "__main__":
    main()
