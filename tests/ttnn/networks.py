"""Convolution, pooling, attention: what networks are made of."""

from __future__ import annotations

import math
from typing import Any

from tests.ttnn.case import SHORT, Bench, Body, Group, torch, ttnn

group = Group("network")


def _conv2d(inside: int, out: int, size: int, kernel: int, stride: int, padding: int, **options: Any) -> Body:
    groups, dilation = options.pop("groups", 1), options.pop("dilation", 1)
    batch, bias, dtype = options.pop("batch", 1), options.pop("bias", True), options.pop("dtype", "bfloat16")

    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.normal(batch, size, size, inside), rows=True)
        w = bench.normal(out, inside // groups, kernel, kernel).bfloat16().float() / 4
        b = bench.normal(1, 1, 1, out).bfloat16().float()
        weights_dtype = getattr(ttnn, "bfloat16" if dtype == "bfloat16" else dtype)
        got, (height, width) = ttnn.conv2d(
            input_tensor=x,
            weight_tensor=ttnn.from_torch(w, dtype=ttnn.float32 if dtype == "bfloat8_b" else weights_dtype),
            bias_tensor=ttnn.from_torch(b, dtype=ttnn.float32 if dtype == "bfloat8_b" else weights_dtype)
            if bias
            else None,
            device=bench.device,
            in_channels=inside,
            out_channels=out,
            batch_size=batch,
            input_height=size,
            input_width=size,
            kernel_size=(kernel, kernel),
            stride=(stride, stride),
            padding=(padding, padding),
            dilation=(dilation, dilation),
            groups=groups,
            conv_config=ttnn.Conv2dConfig(weights_dtype=weights_dtype, **options),
            return_output_dim=True,
        )
        want = torch.nn.functional.conv2d(
            held.permute(0, 3, 1, 2), w, b.reshape(-1) if bias else None, stride, padding, dilation, groups
        )
        values = ttnn.to_torch(got).reshape(batch, height, width, -1)[..., :out]
        return [(values.permute(0, 3, 1, 2), want)]

    return body


group.add("conv2d/3 by 3", _conv2d(32, 32, 8, 3, 1, 1), tolerance=0.04)
group.add("conv2d/1 by 1", _conv2d(32, 64, 8, 1, 1, 0), tolerance=0.04)
group.add("conv2d/stride 2", _conv2d(32, 32, 8, 3, 2, 1), tolerance=0.04)
group.add("conv2d/5 by 5", _conv2d(16, 32, 8, 5, 1, 2), tolerance=0.04)
group.add("conv2d/no bias", _conv2d(32, 32, 8, 3, 1, 1, bias=False), tolerance=0.04)
group.add("conv2d/batch of 2", _conv2d(32, 32, 8, 3, 1, 1, batch=2), tolerance=0.04)
group.add("conv2d/groups", _conv2d(64, 64, 8, 3, 1, 1, groups=2), tolerance=0.04)
group.add("conv2d/each channel alone", _conv2d(32, 32, 8, 3, 1, 1, groups=32), tolerance=0.04)
group.add("conv2d/dilated", _conv2d(32, 32, 8, 3, 1, 2, dilation=2), tolerance=0.04)
group.add("conv2d/bfp8 weights", _conv2d(32, 32, 8, 3, 1, 1, dtype="bfloat8_b"), tolerance=0.08)
group.add("conv2d/few channels", _conv2d(3, 16, 16, 3, 1, 1), tolerance=0.04)


@group.case("conv1d/3", tolerance=0.04)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 32, 32), rows=True)
    w = bench.normal(32, 32, 3).bfloat16().float() / 4
    got, length = ttnn.conv1d(
        input_tensor=x,
        weight_tensor=ttnn.from_torch(w, dtype=ttnn.bfloat16),
        device=bench.device,
        in_channels=32,
        out_channels=32,
        batch_size=1,
        input_length=32,
        kernel_size=3,
        stride=1,
        padding=1,
        groups=1,
        return_output_dim=True,
    )
    want = torch.nn.functional.conv1d(held.transpose(1, 2), w, padding=1).transpose(1, 2)
    return [(ttnn.to_torch(got).reshape(1, length, 32), want)]


@group.case("conv_transpose2d/2", tolerance=0.04)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 8, 8, 32), rows=True)
    w = bench.normal(32, 32, 3, 3).bfloat16().float() / 4
    got, (height, width) = ttnn.conv_transpose2d(
        input_tensor=x,
        weight_tensor=ttnn.from_torch(w, dtype=ttnn.bfloat16),
        device=bench.device,
        in_channels=32,
        out_channels=32,
        batch_size=1,
        input_height=8,
        input_width=8,
        kernel_size=(3, 3),
        stride=(2, 2),
        padding=(1, 1),
        output_padding=(1, 1),
        dilation=(1, 1),
        groups=1,
        return_output_dim=True,
    )
    want = torch.nn.functional.conv_transpose2d(held.permute(0, 3, 1, 2), w, None, 2, 1, 1)
    return [(ttnn.to_torch(got).reshape(1, height, width, 32).permute(0, 3, 1, 2), want)]


def _pool(kind: str, kernel: int, stride: int, padding: int, channels: int) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.normal(1, 8, 8, channels).reshape(1, 1, 64, channels), rows=True)
        options: dict[str, Any] = {"dilation": [1, 1]} if kind == "max_pool2d" else {}
        got = getattr(ttnn, kind)(
            input_tensor=x,
            batch_size=1,
            input_h=8,
            input_w=8,
            channels=channels,
            kernel_size=[kernel, kernel],
            stride=[stride, stride],
            padding=[padding, padding],
            **options,
        )
        want = getattr(torch.nn.functional, kind)(
            held.reshape(1, 8, 8, channels).permute(0, 3, 1, 2), kernel, stride, padding
        )
        want = want.permute(0, 2, 3, 1).reshape(1, 1, -1, channels)
        return [(ttnn.to_torch(got)[..., :channels], want)]

    return body


for _kernel, _stride, _padding in ((2, 2, 0), (3, 2, 1), (3, 1, 1)):
    for _channels in (32, 64):
        group.add(
            f"max_pool2d/{_kernel} {_stride} {_padding} of {_channels}",
            _pool("max_pool2d", _kernel, _stride, _padding, _channels),
            tolerance=0.0,
        )
        group.add(
            f"avg_pool2d/{_kernel} {_stride} {_padding} of {_channels}",
            _pool("avg_pool2d", _kernel, _stride, _padding, _channels),
        )


@group.case("global_avg_pool2d/bf16", tolerance=0.03)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 8, 8, 64) + 1)
    return [(ttnn.global_avg_pool2d(x), held.mean((1, 2), keepdim=True))]


@group.case("upsample/nearest", tolerance=0.0)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 4, 4, 32), rows=True)
    want = torch.nn.functional.interpolate(held.permute(0, 3, 1, 2), scale_factor=2).permute(0, 2, 3, 1)
    return [(ttnn.upsample(x, 2), want)]


def _attention(
    heads: int, kv_heads: int, length: int, width: int, causal: bool, dtype: str, mask: bool = False
) -> Body:
    def body(bench: Bench) -> Any:
        q, held_q = bench.pair(bench.normal(1, heads, length, width), dtype)
        k, held_k = bench.pair(bench.normal(1, kv_heads, length, width), dtype)
        v, held_v = bench.pair(bench.normal(1, kv_heads, length, width), dtype)
        given = torch.zeros(1, 1, length, length).masked_fill(bench.uniform(0, 1, length, length) > 0.7, -1e9)
        got = ttnn.transformer.scaled_dot_product_attention(
            q, k, v, is_causal=causal, attn_mask=bench.put(given, dtype) if mask else None
        )
        want = torch.nn.functional.scaled_dot_product_attention(
            held_q, held_k, held_v, attn_mask=given if mask else None, is_causal=causal, enable_gqa=heads != kv_heads
        )
        return [(got, want)]

    return body


for _heads, _kv, _length, _width in ((2, 2, 64, 64), (4, 2, 128, 64), (2, 1, 128, 32)):
    for _causal in (False, True):
        _name = f"attention/{_heads} of {_kv} heads {_length} by {_width}{' causal' if _causal else ''}"
        group.add(_name, _attention(_heads, _kv, _length, _width, _causal, "bfloat16"), tolerance=0.2)
group.add("attention/mask", _attention(2, 2, 64, 64, False, "bfloat16", mask=True), tolerance=0.1)
group.add("attention/bfp8", _attention(2, 2, 64, 64, True, "bfloat8_b"), tolerance=0.1)


@group.case("attention/decode", tolerance=0.06)
def _(bench: Bench) -> Any:
    heads, kv_heads, length, width, place = 8, 2, 128, 64, 70
    q, held_q = bench.pair(bench.normal(1, 1, heads, width))
    k, held_k = bench.pair(bench.normal(1, kv_heads, length, width))
    v, held_v = bench.pair(bench.normal(1, kv_heads, length, width))
    chosen = ttnn.SDPAProgramConfig(
        compute_with_storage_grid_size=(4, 2), q_chunk_size=32, k_chunk_size=32, exp_approx_mode=False
    )
    got = ttnn.transformer.scaled_dot_product_attention_decode(
        q, k, v, cur_pos=[place], is_causal=True, program_config=chosen
    )
    seen = [t[:, :, : place + 1] for t in (held_k, held_v)]
    want = torch.nn.functional.scaled_dot_product_attention(
        held_q.reshape(1, heads, 1, width), *seen, enable_gqa=True
    ).reshape(1, 1, heads, width)
    return [(ttnn.to_torch(got)[:, :, :heads], want)]


@group.case("attention/softmax with mask", tolerance=0.04)  # 0.0312; ttsim without SFPLOADMACRO has the same bits
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 2, 64, 64))
    mask = torch.zeros(1, 1, 1, 64)
    mask[..., 40:] = -1e9
    got = ttnn.transformer.attention_softmax(x, head_size=64, attention_mask=bench.put(mask.expand(1, 1, 32, 64)))
    return [(got, torch.softmax(held / math.sqrt(64) + mask, -1))]


@group.case("heads/split and join", tolerance=0.0)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 64, 3 * 128))
    q, k, v = ttnn.transformer.split_query_key_value_and_split_heads(x, num_heads=2)
    parts = held.reshape(1, 64, 3, 2, 64).permute(2, 0, 3, 1, 4)
    joined = ttnn.transformer.concatenate_heads(v)
    return [(q, parts[0]), (k, parts[1].transpose(-2, -1)), (joined, parts[2].transpose(1, 2).reshape(1, 64, 128))]


@group.case("heads/nlp_create_qkv_heads", tolerance=0.0)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 1, 64, (4 + 2 + 2) * 64))
    got = ttnn.experimental.nlp_create_qkv_heads(x, num_heads=4, num_kv_heads=2, transpose_k_heads=False)
    parts = held.reshape(1, 64, 8, 64).transpose(1, 2)
    return list(zip(got, (parts[:, :4], parts[:, 4:6], parts[:, 6:]), strict=True))


@group.case("heads/nlp_concat_heads", tolerance=0.0)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 4, 64, 64))
    return [(ttnn.experimental.nlp_concat_heads(x), held.transpose(1, 2).reshape(1, 1, 64, 256))]


@group.case("rotary_embedding/bf16", tolerance=0.03)
def _(bench: Bench) -> Any:
    length, width = 64, 64
    x, held = bench.pair(bench.normal(1, 2, length, width))
    angles = torch.outer(torch.arange(length).float(), 10000 ** (-torch.arange(0, width, 2).float() / width))
    angles = torch.cat([angles, angles], -1).reshape(1, 1, length, width)
    cos, held_cos = bench.pair(angles.cos())
    sin, held_sin = bench.pair(angles.sin())
    turned = torch.cat([-held[..., width // 2 :], held[..., : width // 2]], -1)
    return [(ttnn.experimental.rotary_embedding(x, cos, sin), held * held_cos + turned * held_sin)]


def _cache(update: bool, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        cache, held = bench.pair(bench.normal(1, 2, 128, 64), dtype)
        want = held.clone()
        if update:
            x, held_x = bench.pair(bench.normal(1, 2, 1, 64), dtype)
            padded = bench.put(torch.cat([held_x.permute(2, 1, 0, 3), torch.zeros(1, 2, 31, 64)], 2), dtype)
            ttnn.update_cache(cache, padded, 37, batch_offset=0)
            want[:, :, 37:38] = held_x
        else:
            x, held_x = bench.pair(bench.normal(1, 2, 64, 64), dtype)
            ttnn.fill_cache(cache, x, 0)
            want[:, :, :64] = held_x
        return [(cache, want)]

    return body


for _dtype in ("bfloat16", "bfloat8_b"):
    # A row that enters a tile of bfp8 changes the shared exponents of its blocks.
    group.add(f"fill_cache/{SHORT[_dtype]}", _cache(False, _dtype), tolerance=0.0)
    group.add(f"update_cache/{SHORT[_dtype]}", _cache(True, _dtype), tolerance=0.0 if _dtype == "bfloat16" else 0.06)
