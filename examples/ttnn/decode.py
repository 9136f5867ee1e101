"""A decode loop with a KV cache in ttnn, beside the same model in torch.

One decoder layer with eight query heads, of which four share a key and a value as in recent language models, picks a
word after the other, each from the logits of the one before. Torch sees the whole sequence at once and has no cache.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import ttnn

from tools import compare, get, put

WORDS, WIDTH, HEADS, KV_HEADS, HEAD, HIDDEN, ROOM, STEPS = 128, 128, 8, 2, 32, 256, 64, 6


def weights() -> dict[str, torch.Tensor]:
    """Random weights, rounded to bfloat16, which both sides use."""
    shapes = {
        "q": (WIDTH, HEADS * HEAD),
        "k": (WIDTH, KV_HEADS * HEAD),
        "v": (WIDTH, KV_HEADS * HEAD),
        "out": (HEADS * HEAD, WIDTH),
        "gate": (WIDTH, HIDDEN),
        "up": (WIDTH, HIDDEN),
        "down": (HIDDEN, WIDTH),
        "logits": (WIDTH, WORDS),
    }
    made = {name: torch.randn(shape) / shape[0] ** 0.5 for name, shape in shapes.items()}
    made["words"] = torch.randn(WORDS, WIDTH)
    return {name: values.bfloat16().float() for name, values in made.items()}


def normed(x: torch.Tensor) -> torch.Tensor:
    """RMS norm."""
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()


def on_torch(tokens: list[int], w: dict[str, torch.Tensor]) -> torch.Tensor:
    """Logits behind each of the tokens, float32: (tokens, words)."""
    x, count = w["words"][tokens], len(tokens)
    h = normed(x)
    q, k, v = ((h @ w[name]).reshape(1, count, -1, HEAD).transpose(1, 2) for name in ("q", "k", "v"))
    attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    x = x + attended.transpose(1, 2).reshape(count, -1) @ w["out"]
    h = normed(x)
    x = x + (F.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
    return normed(x) @ w["logits"]


class Decoder:
    """The model on the device, with what it has seen in its cache.

    Args:
        w: weights.
        device: where it runs.
    """

    def __init__(self, w: dict[str, torch.Tensor], device: ttnn.Device) -> None:
        self._w = {name: put(values, device) for name, values in w.items() if name != "words"}
        rows = {"dtype": ttnn.bfloat16, "layout": ttnn.ROW_MAJOR_LAYOUT, "device": device}
        self._words = ttnn.from_torch(w["words"], **rows)
        self._cache = [put(torch.zeros(1, KV_HEADS, ROOM, HEAD), device) for _ in "kv"]
        # The keys of a head are shared out among cores, of which there may be 64; here two heads have four each.
        self._grid = ttnn.SDPAProgramConfig(
            compute_with_storage_grid_size=(4, 2), q_chunk_size=32, k_chunk_size=32, exp_approx_mode=False
        )
        self._device = device
        self._place = 0

    def step(self, token: int) -> torch.Tensor:
        """Take a token, and give the logits of the next: (words,)."""
        index = torch.full((1, 1), token, dtype=torch.int32)
        placed = ttnn.from_torch(index, dtype=ttnn.uint32, layout=ttnn.ROW_MAJOR_LAYOUT, device=self._device)
        x = ttnn.reshape(ttnn.embedding(placed, self._words, layout=ttnn.TILE_LAYOUT), (1, 1, 1, WIDTH))
        h = ttnn.rms_norm(x, epsilon=1e-5)
        for cache, name in zip(self._cache, ("k", "v"), strict=True):
            new = ttnn.reshape(ttnn.linear(h, self._w[name]), (1, KV_HEADS, 1, HEAD))
            ttnn.update_cache(cache, ttnn.permute(new, (2, 1, 0, 3)), self._place)
        q = ttnn.reshape(ttnn.linear(h, self._w["q"]), (1, 1, HEADS, HEAD))
        attended = ttnn.transformer.scaled_dot_product_attention_decode(
            q, *self._cache, cur_pos=[self._place], program_config=self._grid
        )
        attended = ttnn.reshape(attended[:, :, :HEADS, :], (1, 1, 1, HEADS * HEAD))
        x = ttnn.add(x, ttnn.linear(attended, self._w["out"]))
        h = ttnn.rms_norm(x, epsilon=1e-5)
        gate = ttnn.linear(h, self._w["gate"], activation="silu")
        x = ttnn.add(x, ttnn.linear(ttnn.mul(gate, ttnn.linear(h, self._w["up"])), self._w["down"]))
        self._place += 1
        return get(ttnn.linear(ttnn.rms_norm(x, epsilon=1e-5), self._w["logits"])).reshape(WORDS)


def main() -> None:
    """Let the device choose words, and torch say what their logits are."""
    torch.manual_seed(3)
    w = weights()
    device = ttnn.open_device(device_id=0)
    try:
        decoder, tokens, logits = Decoder(w, device), [17], []
        for _ in range(STEPS):
            logits.append(decoder.step(tokens[-1]))
            tokens.append(int(logits[-1].argmax()))
        want = on_torch(tokens[:-1], w)
        for place, (got, wanted) in enumerate(zip(logits, want, strict=True)):
            compare(f"logits behind word {place}", got, wanted)
        print("words:", *tokens)
    finally:
        ttnn.close_device(device)


if __name__ == "__main__":
    main()
