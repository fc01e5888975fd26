#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes torch/index.json and torch/*.npy beside itself: what each layer must give, by PyTorch in float64.

    apt-get install python3-torch
    /usr/bin/python3 tests/golden/make_golden.py            writes the folder anew
    /usr/bin/python3 tests/golden/make_golden.py --check    compares with what is there; exit 1 = differs

Debian 12's torch 1.13.0 and numpy 1.24.2 made the files; a second run gives the same bytes. Inputs are numbers of a
seed that is their name and shape, rounded to their dtype (f16 and bf16 as their bits, uint16); the result is that
of float64 on exactly these numbers, not rounded. f16 and bf16 cases are drawn again until no result lies so near a
tie of rounding, and yet beyond 1e-3 ulp of it, that the error of a careful f32 computation could decide it.
"""
import hashlib
import io
import json
import math
import os
import sys
import zlib

import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch")
NARROW = {"f16": (10, -14, torch.float16), "bf16": (7, -126, torch.bfloat16)}
STORED = {"f32": np.float32, "f64": np.float64, "i32": np.int32}

files = {}  # name -> bytes
by_hash = {}  # content -> name
cases = []


# ---- tensors and cases ----


class Tensor:
    """role: input, weight (parameter or buffer of the graph). value: exactly what is stored."""

    def __init__(self, name, role, dtype, array):
        self.name, self.role, self.dtype = name, role, dtype
        if dtype in NARROW:
            narrow = torch.tensor(np.asarray(array, np.float64)).to(NARROW[dtype][2])
            self.stored = narrow.view(torch.int16).numpy().view(np.uint16)
            self.value = narrow.to(torch.float64)
        else:
            self.stored = np.ascontiguousarray(np.asarray(array, STORED[dtype]))
            self.value = torch.tensor(self.stored.astype(np.int64 if dtype == "i32" else np.float64))


def npy(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def save(stem, array):
    """The name of the file: stem, shape and, among those that differ, a number."""
    data = npy(array)
    key = hashlib.sha256(data).digest()
    if key not in by_hash:
        names = ("%s-%s%s.npy" % (stem, text(array.shape), "-%d" % n if n else "") for n in range(1000))
        name = next(name for name in names if name not in files)
        by_hash[key] = name
        files[name] = data
    return by_hash[key]


class Draw:
    """Numbers in [-1, 1) times scale, plus shift. The seed is the tensor, so that cases share their files."""

    def __init__(self, attempt):
        self.attempt = attempt

    def numbers(self, *what):
        shape = what[2]
        key = "|".join(str(w) for w in what + (self.attempt,))
        return np.random.Generator(np.random.PCG64(zlib.crc32(key.encode()))).random(shape)

    def __call__(self, name, role, dtype, shape, scale=1.0, shift=0.0):
        return Tensor(name, role, dtype, (2 * self.numbers(name, dtype, shape, scale, shift) - 1) * scale + shift)

    def ids(self, name, shape, below):
        return Tensor(name, "input", "i32", (self.numbers(name, below, shape) * below).astype(np.int32))


def undecided(dtype, want):
    """Is any value between 1e-3 ulp of a tie and what f32 arithmetic can tell?"""
    bits, lowest, _ = NARROW[dtype]
    w = want.numpy()
    rms = np.sqrt(np.mean(w * w, axis=-1, keepdims=True))
    exponent = np.floor(np.log2(np.maximum(np.abs(w), 1e-300)))
    ulp = 2.0 ** (np.maximum(exponent, lowest) - bits)
    share = w / ulp - np.floor(w / ulp)
    far = np.abs(share - 0.5)
    return bool(np.any((share != 0) & (far > 1e-3) & (far < 1e-3 + 4e-7 * rms / ulp)))


def bound_of(layer, dtype, exact):
    if exact:
        return "exact"
    if dtype != "f32":
        return "bits" if dtype in NARROW else "f64"
    return "row" if layer in ("norm", "attend") else "nmse"


def case(layer, name, dtype, make, runs=None, exact=False, **settings):
    """make(draw) -> (tensors, want). runs: lists of (slot, past, rows); the rows lie in the inputs in this order."""
    for attempt in range(10000):
        tensors, want = make(Draw(attempt))
        if dtype not in NARROW or exact or not undecided(dtype, want):
            break
    else:
        raise SystemExit("%s %s: every attempt has an undecided value" % (layer, name))
    rows = next(t for t in tensors if t.role == "input").stored.shape[0]
    cases.append(
        {
            "layer": layer,
            "name": name,
            "dtype": dtype,
            "bound": bound_of(layer, dtype, exact),
            "runs": runs or [[[0, 0, rows]]],
            "set": settings,
            "tensors": [
                {"name": t.name, "role": t.role, "dtype": t.dtype, "file": save("%s-%s" % (t.name, t.dtype), t.stored)}
                for t in tensors
            ],
            "want": save("want-%s" % layer, want.contiguous().numpy()),
        }
    )


def text(shape):
    return "x".join(str(n) for n in shape)


# ---- what layers compute; P: name -> float64 values ----


def values(tensors):
    return {t.name: t.value for t in tensors}


def linear(x, P, name):
    return F.linear(x, P[name + ".weight"], P.get(name + ".bias"))


def norm(kind, x, P, name, eps):
    if kind == "none":
        return x
    if kind == "layer":
        return F.layer_norm(x, x.shape[-1:], P[name + ".weight"], P.get(name + ".bias"), eps)
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * P[name + ".weight"]


UNARY = {
    "relu": F.relu,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
}
GATED = {
    "swiglu": F.silu,
    "geglu": UNARY["gelu_tanh"],
    "glu": torch.sigmoid,
}


def ffn(kind, x, P, name):
    up = linear(x, P, name + ".up")
    hidden = GATED[kind](linear(x, P, name + ".gate")) * up if kind in GATED else UNARY[kind](up)
    return linear(hidden, P, name + ".down")


def frequencies(dims, theta=10000.0, scaling="none", factor=1.0, original_context=0, low=1.0, high=4.0, fast=32.0,
                slow=1.0, attn_factor=0.0, factors=None):
    """Radians a position of each pair, and the factor on cos and sin."""
    i = torch.arange(dims // 2, dtype=torch.float64)
    base = theta
    if scaling == "ntk":
        base = theta * factor ** (dims / (dims - 2))
    f = base ** (-2 * i / dims)
    if scaling == "linear":
        return f / factor, 1.0
    if scaling == "factors":
        return f / torch.tensor(factors, dtype=torch.float32).double(), attn_factor or 1.0
    if scaling == "llama3":
        period = 2 * math.pi / f
        smooth = (original_context / period - low) / (high - low)
        mixed = (1 - smooth) * f / factor + smooth * f
        f = torch.where(period < original_context / high, f, torch.where(period > original_context / low, f / factor, mixed))
        return f, 1.0
    if scaling == "yarn":
        pair = [dims * math.log(original_context / (turns * 2 * math.pi)) / (2 * math.log(theta)) for turns in (fast, slow)]
        first, last = max(math.floor(pair[0]), 0), min(math.ceil(pair[1]), dims - 1)
        keep = 1 - ((i - first) / max(last - first, 0.001)).clamp(0, 1)
        return f / factor * (1 - keep) + f * keep, attn_factor or 0.1 * math.log(factor) + 1
    return f, 1.0


def rope(x, pos, style, **how):
    """x [..., rows, d] with pos [..., rows]: of each row the first dims elements turn."""
    f, magnitude = frequencies(**how)
    r = how["dims"]
    turn = torch.polar(torch.full_like(f, magnitude).expand(*pos.shape, r // 2), pos[..., None].double() * f)
    head, rest = x[..., :r], x[..., r:]
    pairs = head.unflatten(-1, (r // 2, 2)) if style == "adjacent" else head.unflatten(-1, (2, r // 2)).transpose(-1, -2)
    turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    turned = turned.flatten(-2) if style == "adjacent" else turned.transpose(-1, -2).flatten(-2)
    return torch.cat([turned, rest], -1)


def rope_heads(x, pos, style, **how):
    """x [N, H, d], pos [N]"""
    return rope(x.transpose(0, 1), pos.expand(x.shape[1], -1), style, **how).transpose(0, 1)


def bucket(distance, buckets, max_distance, bidirectional):
    """T5's bucket of the distance key - query, in whole numbers."""
    first = 0
    if bidirectional:
        buckets //= 2
        first = buckets if distance > 0 else 0
        far = abs(distance)
    else:
        far = max(-distance, 0)
    exact = buckets // 2
    if far < exact:
        return first + far
    n, k = buckets - exact, 0
    # far / exact >= (max / exact)^((k + 1) / n)
    while k + 1 < n and far**n * exact ** (k + 1) >= max_distance ** (k + 1) * exact**n:
        k += 1
    return first + exact + k


def sequences(runs):
    """Of each slot the places of its rows, in order of position."""
    places, at = {}, 0
    for run in runs:
        for slot, past, n in run:
            places.setdefault(slot, [])
            assert len(places[slot]) == past
            places[slot] += range(at, at + n)
            at += n
    return list(places.values())


def attend(q, k, v, runs, bidirectional=False, window=0, softcap=0.0, scale=0.0, cache="none", rel_bias=None,
           buckets=0, max_distance=0, **_):
    """softmax(q k^T) v of each sequence; q [N, H, d], k, v [N, G, d]"""
    y = torch.zeros_like(q)
    if cache == "f16":
        k, v = k.half().double(), v.half().double()
    for rows in sequences(runs):
        t = len(rows)
        K, V = (c[rows].repeat_interleave(q.shape[1] // k.shape[1], 1) for c in (k, v))
        score = torch.einsum("ihd,jhd->hij", q[rows], K) * (scale or q.shape[2] ** -0.5)
        if softcap:
            score = softcap * torch.tanh(score / softcap)
        far = torch.arange(t)[None, :] - torch.arange(t)[:, None]
        if rel_bias is not None:
            b = [[bucket(int(d), buckets, max_distance, bidirectional) for d in line] for line in far]
            score = score + rel_bias[torch.tensor(b)].permute(2, 0, 1)
        seen = torch.ones_like(far, dtype=torch.bool) if bidirectional else far <= 0
        if window:
            seen &= far.abs() < window
        score = score.masked_fill(~seen, -math.inf)
        y[rows] = torch.einsum("hij,jhd->ihd", torch.softmax(score, -1), V)
    return y


def attention(x, P, name, runs, H, G, d, pos=None, style=None, how=None, qk_eps=1e-6, **settings):
    q, k, v = (linear(x, P, "%s.%s" % (name, n)).unflatten(-1, (-1, d)) for n in "qkv")
    assert q.shape[1] == H and k.shape[1] == G
    if name + ".q_norm.weight" in P:
        q, k = norm("rms", q, P, name + ".q_norm", qk_eps), norm("rms", k, P, name + ".k_norm", qk_eps)
    if how:
        q, k = rope_heads(q, pos, style, **how), rope_heads(k, pos, style, **how)
    return linear(attend(q, k, v, runs, **settings).flatten(-2), P, name + ".o")


def block(x, P, name, kind, norm_kind, ffn_kind, eps, attn):
    """attn(x, name) is the attention of this block."""
    sublayers = (("attn", attn), ("ffn", lambda h, n: ffn(ffn_kind, h, P, n)))
    for part, layer in sublayers:
        at = "%s.%s" % (name, part)
        if kind == "post":
            x = norm(norm_kind, x + layer(x, at), P, at + "_norm", eps)
        else:
            h = layer(norm(norm_kind, x, P, at + "_norm", eps), at)
            x = x + (norm(norm_kind, h, P, at + "_post_norm", eps) if kind == "pre_post" else h)
    return x


# ---- parameters ----


def linear_params(draw, name, out, width, dtype="f32", bias=False, other="f32"):
    made = [draw(name + ".weight", "weight", dtype, (out, width), width**-0.5)]
    return made + ([draw(name + ".bias", "weight", other, (out,), 0.3)] if bias else [])


def norm_params(draw, name, kind, width, other="f32"):
    if kind == "none":
        return []
    made = [draw(name + ".weight", "weight", other, (width,), 0.4, 1.0)]
    return made + ([draw(name + ".bias", "weight", other, (width,), 0.3)] if kind == "layer" else [])


def ffn_params(draw, name, kind, D, width, dtype="f32", bias=False, other="f32"):
    parts = (["gate"] if kind in GATED else []) + ["up"]
    made = sum((linear_params(draw, "%s.%s" % (name, p), width, D, dtype, bias, other) for p in parts), [])
    return made + linear_params(draw, name + ".down", D, width, dtype, bias, other)


def attention_params(draw, name, D, H, G, d, dtype="f32", bias=(0, 0, 0, 0), qk_norm=False, other="f32"):
    shapes = {"q": (H * d, D), "k": (G * d, D), "v": (G * d, D), "o": (D, H * d)}
    made = sum((linear_params(draw, "%s.%s" % (name, p), *s, dtype, b, other) for (p, s), b in zip(shapes.items(), bias)), [])
    if qk_norm:
        made += norm_params(draw, name + ".q_norm", "rms", d, other) + norm_params(draw, name + ".k_norm", "rms", d, other)
    return made


def block_params(draw, name, kind, norm_kind, ffn_kind, D, H, G, d, width, bias=(0, 0, 0, 0), ffn_bias=False,
                 qk_norm=False, other="f32", dtype="f32"):
    made = attention_params(draw, name + ".attn", D, H, G, d, dtype, bias, qk_norm, other)
    made += ffn_params(draw, name + ".ffn", ffn_kind, D, width, dtype, ffn_bias, other)
    for part in ("attn_norm", "ffn_norm") + (("attn_post_norm", "ffn_post_norm") if kind == "pre_post" else ()):
        made += norm_params(draw, "%s.%s" % (name, part), norm_kind, D, other)
    return made


# ---- the cases ----


def linear_cases():
    # x, weight [out, in]: never square
    shapes = [((1, 1), 2), ((3, 7), 5), ((5, 33), 17), ((9, 64), 31), ((2, 3, 17), 9), ((2, 3, 2, 11), 4), ((33, 96), 40)]
    for shape, out in shapes:
        for dtype in ("f32", "f16", "bf16", "f64"):
            for bias in (False, True):
                if dtype != "f32" and len(shape) > 3:
                    continue

                def make(draw):
                    wide = "f64" if dtype == "f64" else "f32"
                    made = [draw("x", "input", wide, shape)]
                    made += linear_params(draw, "layer", out, shape[-1], dtype, bias, wide)
                    return made, linear(made[0].value, values(made), "layer")

                case("linear", "%s %s to %d%s" % (dtype, text(shape), out, " bias" if bias else ""),
                     "f64" if dtype == "f64" else "f32", make)


def embedding_cases():
    for shape, V, D in (((7,), 11, 5), ((3, 4), 19, 33), ((1,), 2, 1)):
        for dtype in ("f32", "f16", "bf16", "f64"):

            def make(draw):
                ids, table = draw.ids("ids", shape, V), draw("layer.weight", "weight", dtype, (V, D))
                want = F.embedding(ids.value, table.value)
                assert torch.equal(want, F.one_hot(ids.value, V).double() @ table.value)
                return [ids, table], want

            case("embedding", "%s %s of %dx%d" % (dtype, text(shape), V, D), "f64" if dtype == "f64" else "f32", make, exact=True)


def norm_cases():
    for kind in ("rms", "layer"):
        for dtype in ("f32", "f16", "bf16", "f64"):
            shapes = [(1, 3), (5, 33), (3, 65), (2, 3, 17)]
            if dtype in ("f32", "f64"):
                shapes += [(7, 129), (2, 3, 2, 9), (3, 576)]
            for shape in shapes:
                for eps, shift, scale in ((1e-5, 0.0, 1.0), (0.0, 0.0, 1.0), (1e-6, 30.0, 1.0), (1e-5, 0.0, 1e-3)):
                    if (eps, scale) != (1e-5, 1.0) and shape != (5, 33):
                        continue
                    if shift and dtype != "f32":
                        continue

                    def make(draw):
                        other = "f64" if dtype == "f64" else "f32"
                        made = [draw("x", "input", dtype, shape, 2.0 * scale, shift)] + norm_params(draw, "layer", kind, shape[-1], other)
                        return made, norm(kind, made[0].value, values(made), "layer", eps)

                    case("norm", "%s %s %s eps %g shift %g scale %g" % (kind, dtype, text(shape), eps, shift, scale), dtype, make,
                         kind=kind, eps=eps)


def element_cases():
    shapes = {"f32": [(1, 1), (5, 33), (2, 3, 17), (2, 3, 2, 9)], "f16": [(3, 13), (2, 3, 7)], "bf16": [(5, 33), (2, 3, 7)], "f64": [(5, 33)]}
    binary = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "glu": lambda a, b: F.glu(torch.cat([b, a], -1), -1),
        "swiglu": lambda a, b: F.silu(a) * b,
    }
    for dtype, some in shapes.items():
        for shape in some:
            for op, f in UNARY.items():

                def make(draw):
                    # far from the left tail, where a narrow result is finer than what f32 can tell
                    x = draw("x", "input", dtype, shape, 2.0 if dtype in NARROW else 6.0)
                    return [x], f(x.value)

                case("unary", "%s %s %s" % (op, dtype, text(shape)), dtype, make, exact=op == "relu", op=op)
            for factor in (0.125, -3.3):

                def make(draw):
                    x = draw("x", "input", dtype, shape, 3.0)
                    return [x], x.value * factor

                case("unary", "scale %g %s %s" % (factor, dtype, text(shape)), dtype, make, op="scale", factor=factor)
            for op, f in binary.items():

                def make(draw):
                    a, b = draw("a", "input", dtype, shape, 3.0), draw("b", "input", dtype, shape, 3.0)
                    return [a, b], f(a.value, b.value)

                case("binary", "%s %s %s" % (op, dtype, text(shape)), dtype, make, op=op)


def ffn_cases():
    for kind in list(GATED) + list(UNARY):
        for dtype, N, D, width, bias in (("f32", 5, 9, 17, False), ("f32", 3, 33, 65, True), ("f16", 5, 9, 17, True),
                                         ("bf16", 1, 9, 17, False), ("f64", 2, 7, 11, True)):

            def make(draw):
                other = "f64" if dtype == "f64" else "f32"
                made = [draw("x", "input", other, (N, D))] + ffn_params(draw, "layer", kind, D, width, dtype, bias, other)
                return made, ffn(kind, made[0].value, values(made), "layer")

            case("ffn", "%s %s %d %d %d%s" % (kind, dtype, N, D, width, " bias" if bias else ""),
                 "f64" if dtype == "f64" else "f32", make, kind=kind)


FAR = [0, 1, 2, 63, 511, 2047, 4095, 6000, 8191, 8192]
SCALINGS = [
    {"scaling": "linear", "factor": 4.0},
    {"scaling": "ntk", "factor": 8.0},
    {"scaling": "yarn", "factor": 4.0, "original_context": 512},
    {"scaling": "llama3", "factor": 8.0, "original_context": 1024},
    {"scaling": "factors", "factors": [1.0, 1.5, 2.0, 4.0, 7.25], "attn_factor": 1.19},
]


def rope_cases():
    def one(dtype, style, H, d, dims, theta, positions, layout=0, packed=True, **how):
        # layout 1 and 2: 2 sequences with positions of their own, or the same ones as a buffer
        pos = np.array(positions, np.int32)
        if layout and packed:
            pos = np.stack([pos, pos[::-1]])

        def make(draw):
            T = len(positions)
            x = draw("x", "input", dtype, ((T, H, d), (2, H, T, d), (2, T, H, d))[layout], 1.5)
            p = Tensor("pos", "input" if packed else "weight", "i32", pos)
            if layout:
                at = p.value if packed else p.value.expand(2, -1)
                outside = x.value if layout == 1 else x.value.transpose(1, 2)
                want = rope(outside, at[:, None].expand(-1, H, -1), style, dims=dims, theta=theta, **how)
                want = want if layout == 1 else want.transpose(1, 2)
            else:
                want = rope_heads(x.value, p.value, style, dims=dims, theta=theta, **how)
            return [x, p], want

        name = "%s %s %dx%d of %d theta %g %s%s" % (
            dtype, style, H, dims, d, theta, how.get("scaling", "none"), ("" if not layout else " layout %d" % layout + ("" if packed else " buffer")))
        case("rope", name, dtype, make, style=style, dims=dims, theta=theta, positions=8193, layout=layout,
             rows_pos=packed, **how)

    for style in ("adjacent", "halves"):
        for dtype in ("f32", "f16", "bf16", "f64"):
            wide = dtype in ("f32", "f64")
            one(dtype, style, 3, 10, 10, 10000.0, FAR if wide else FAR[::3])
            one(dtype, style, 1, 14, 6, 500000.0, FAR if wide else FAR[1::3])
            one(dtype, style, 3, 6, 4, 10000.0, FAR[5:] if wide else FAR[-2:], layout=1)
            one(dtype, style, 2, 6, 6, 1000000.0, FAR[5:] if wide else FAR[-2:], layout=1, packed=False)
            one(dtype, style, 3, 6, 4, 10000.0, FAR[5:] if wide else FAR[-2:], layout=2)
            one(dtype, style, 2, 6, 6, 1000000.0, FAR[5:] if wide else FAR[-2:], layout=2, packed=False)
        one("f32", style, 2, 64, 64, 100000.0, FAR)
        for how in SCALINGS:
            one("f32", style, 2, 10, 10, 10000.0, FAR, **how)


HEADS = {"mha": (3, 3), "mqa": (4, 1), "gqa": (6, 2)}


def attend_cases():
    def one(name, heads, d, runs, dtype="f32", cache="none", big=1.0, **settings):
        H, G = HEADS[heads]
        N = sum(n for run in runs for _, _, n in run)

        def make(draw):
            made = [draw("q", "input", dtype, (N, H, d), big)]
            made += [draw(n, "input", dtype, (N, G, d), big) for n in "kv"]
            bias = None
            if "buckets" in settings:
                made.append(draw("rel.rel_bias", "weight", dtype, (settings["buckets"], H), 2.0))
                bias = made[-1].value
            return made, attend(*(t.value for t in made[:3]), runs, rel_bias=bias, cache=cache, **settings)

        case("attend", "%s %s d %d %s cache %s" % (name, heads, d, dtype, cache), dtype, make, runs=runs, cache=cache,
             heads=H, **settings)

    whole, packed = [[[0, 0, 11]]], [[[0, 0, 5], [1, 0, 1], [2, 0, 5]]]
    chunks = [[[0, 0, 6], [2, 0, 1]], [[2, 1, 4], [0, 6, 1]], [[0, 7, 3]], [[1, 0, 2], [2, 5, 1]]]
    kinds = {
        "causal": {},
        "bidirectional": {"bidirectional": True},
        "window": {"window": 4},
        "window both ways": {"window": 3, "bidirectional": True},
        "softcap": {"softcap": 2.5},
        "scale": {"scale": 0.3},
        "bias": {"buckets": 8, "max_distance": 12},
        "bias both ways": {"buckets": 8, "max_distance": 6, "bidirectional": True},
        "everything": {"buckets": 8, "max_distance": 12, "window": 5, "softcap": 3.0, "scale": 0.7},
    }
    for name, settings in kinds.items():
        for heads in HEADS:
            one(name, heads, 5, packed, **settings)
        one(name, "gqa", 5, packed, dtype="f64", **settings)
        if "bidirectional" not in settings:
            one(name, "gqa", 8, chunks, cache="f32", **settings)
            one(name, "mqa", 8, chunks, cache="f16", **settings)
    for heads in HEADS:
        one("steep", heads, 33, whole, big=2.0)
    one("long", "gqa", 16, [[[0, 0, 70]]], cache="f32")


def attention_cases():
    def one(name, heads, D, d, dtype="f32", pos=None, bias=(0, 0, 0, 0), qk_norm=False, runs=None, rope_how=None, **settings):
        H, G = HEADS[heads]
        runs = runs or [[[0, 0, 6], [1, 0, 3]]]
        N = sum(n for run in runs for _, _, n in run)
        at = np.concatenate([np.arange(p, p + n) for run in runs for _, p, n in run]).astype(np.int32)

        def make(draw):
            other = "f64" if dtype == "f64" else "f32"
            made = [draw("x", "input", other, (N, D))] + attention_params(draw, "layer", D, H, G, d, dtype, bias, qk_norm, other)
            if rope_how:
                made.append(Tensor("pos", "input", "i32", at))
            if "buckets" in settings:
                made.append(draw("rel.rel_bias", "weight", other, (settings["buckets"], H)))
            P = values(made)
            return made, attention(P["x"], P, "layer", runs, H, G, d, P.get("pos"), (rope_how or {}).get("style"),
                                   rope_how and {k: v for k, v in rope_how.items() if k not in ("style", "positions")},
                                   rel_bias=P.get("rel.rel_bias"), **settings)

        case("attention", "%s %s %s %d d %d" % (name, heads, dtype, D, d), "f64" if dtype == "f64" else "f32", make, runs=runs,
             heads=H, kv_heads=G, head_dim=d, **(rope_how or {}), **settings)

    turn = {"style": "halves", "dims": 6, "theta": 10000.0, "positions": 16}
    chunks = [[[0, 0, 4]], [[0, 4, 1], [1, 0, 3]]]
    for dtype in ("f32", "f16", "bf16", "f64"):
        for heads in HEADS:
            one("plain", heads, 13, 5, dtype=dtype)
            one("rope", heads, 9, 6, dtype=dtype, rope_how=turn)
    for heads in HEADS:
        one("biases", heads, 13, 5, bias=(1, 1, 1, 1))
        one("norms of q and k", heads, 10, 8, qk_norm=True, qk_eps=1e-6, rope_how=dict(turn, style="adjacent"))
        one("cache", heads, 11, 6, runs=chunks, cache="f32", rope_how=turn)
    one("bidirectional", "mha", 15, 5, bidirectional=True, bias=(0, 0, 0, 1))
    one("window softcap", "gqa", 11, 7, window=3, softcap=4.0, scale=0.25)
    one("bias", "mha", 11, 7, buckets=8, max_distance=12, scale=1.0)


def check_block(x, P, kind, act, H):
    """torch's own layer gives the same."""
    D, width = x.shape[-1], P["layer.ffn.up.weight"].shape[0]
    own = torch.nn.TransformerEncoderLayer(D, H, width, 0.0, act, 1e-5, batch_first=True, norm_first=kind == "pre").eval()
    state = {
        "self_attn.in_proj_weight": torch.cat([P["layer.attn.%s.weight" % n] for n in "qkv"]),
        "self_attn.in_proj_bias": torch.cat([P["layer.attn.%s.bias" % n] for n in "qkv"]),
    }
    parts = (("self_attn.out_proj", "attn.o"), ("linear1", "ffn.up"), ("linear2", "ffn.down"), ("norm1", "attn_norm"), ("norm2", "ffn_norm"))
    for theirs, ours in parts:
        for leaf in ("weight", "bias"):
            state["%s.%s" % (theirs, leaf)] = P["layer.%s.%s" % (ours, leaf)]
    own.load_state_dict(state)
    mask = torch.triu(torch.full((len(x), len(x)), -math.inf), 1)
    with torch.no_grad():
        return own(x[None], src_mask=mask)[0]


def block_cases():
    for kind in ("pre", "post", "pre_post"):
        for norm_kind, ffn_kind, bias in (("layer", "relu", True), ("layer", "gelu", True), ("rms", "swiglu", False),
                                          ("rms", "geglu", False), ("layer", "silu", False), ("rms", "relu", True)):
            for dtype in ("f32", "f64", "f16", "bf16"):
                if dtype != "f32" and ffn_kind in ("silu", "geglu") or dtype in NARROW and ffn_kind == "relu":
                    continue
                other = dtype if dtype == "f64" else "f32"
                runs, D, H, d, width = [[[0, 0, 7]]], 12, 3, 4, 21

                def make(draw):
                    made = [draw("x", "input", other, (7, D))]
                    made += block_params(draw, "layer", kind, norm_kind, ffn_kind, D, H, H, d, width, (bias,) * 4, bias, other=other, dtype=dtype)
                    P = values(made)
                    want = block(P["x"], P, "layer", kind, norm_kind, ffn_kind, 1e-5,
                                 lambda h, name: attention(h, P, name, runs, H, H, d))
                    if norm_kind == "layer" and bias and kind != "pre_post":
                        assert torch.allclose(want, check_block(P["x"], P, kind, ffn_kind, H), 1e-12, 1e-12)
                    return made, want

                case("block", "%s %s %s %s" % (kind, norm_kind, ffn_kind, dtype), other, make, runs=runs, kind=kind, norm=norm_kind,
                     ffn=ffn_kind, eps=1e-5, heads=H, kv_heads=H, head_dim=d)


def sinusoidal(positions, width):
    angle = torch.arange(positions).double()[:, None] * 10000.0 ** (-2 * torch.arange((width + 1) // 2).double() / width)
    return torch.stack([torch.sin(angle), torch.cos(angle)], -1).flatten(1)[:, :width]


def position_cases():
    for D in (8, 9):
        for dtype in ("f32", "f16", "bf16", "f64"):
            other = "f64" if dtype == "f64" else "f32"

            def make(draw):
                x, p = draw("x", "input", other, (6, D)), Tensor("pos", "input", "i32", [0, 3, 1, 12, 12, 5])
                table = draw("layer.weight", "weight", dtype, (13, D))
                return [x, p, table], x.value + table.value[p.value]

            case("learned", "%s %d" % (dtype, D), other, make)
        for dtype in ("f32", "f64"):

            def make(draw):
                x, p = draw("x", "input", dtype, (len(FAR), D)), Tensor("pos", "input", "i32", FAR)
                return [x, p], x.value + sinusoidal(8193, D)[p.value]

            case("sinusoidal", "%s %d" % (dtype, D), dtype, make, positions=8193)
    for dtype in ("f32", "f64"):

        def make(draw):
            x = draw("x", "input", dtype, (3, 19), 60.0)
            return [x], 7.5 * torch.tanh(x.value / 7.5)

        case("softcap", dtype, dtype, make, cap=7.5)


FAMILIES = {
    "gpt2": dict(position="learned", norm="layer", ffn="gelu_tanh", bias=(1, 1, 1, 1), ffn_bias=True, tied=True, kv=4),
    "llama": dict(position="rope", norm="rms", ffn="swiglu"),
    "qwen2": dict(position="rope", norm="rms", ffn="swiglu", bias=(1, 1, 1, 0), style="halves", theta=1000000.0),
    "qwen3": dict(position="rope", norm="rms", ffn="swiglu", qk_norm=True, style="halves", tied=True),
    "gemma": dict(position="rope", norm="rms", ffn="geglu", block="pre_post", style="halves", tied=True, windows=[3, 0],
                  softcap=5.0, logit_softcap=3.0, embedding_scale=12**0.5, scale=0.2),
    "t5 decoder": dict(position="relative", norm="rms", ffn="relu", kv=4, buckets=8, max_distance=12, scale=1.0),
    "vaswani": dict(position="sinusoidal", norm="layer", ffn="relu", block="post", bias=(1, 1, 1, 1), ffn_bias=True, kv=4,
                    no_final_norm=True),
    "no positions": dict(position="none", norm="layer", ffn="silu"),
}


def decoder_cases():
    V, D, L, H, d, width = 19, 12, 2, 4, 6, 20
    runs = [[[0, 0, 4], [1, 0, 2]], [[1, 2, 1], [0, 4, 1]], [[0, 5, 1], [1, 3, 3]]]
    at = np.concatenate([np.arange(p, p + n) for run in runs for _, p, n in run]).astype(np.int32)
    for family, f in FAMILIES.items():
        G = f.get("kv", 2)
        for dtype in ("f32", "f64") + (("f16", "bf16") if family == "llama" else ()):
            other = "f64" if dtype == "f64" else "f32"

            def make(draw):
                made = [draw.ids("ids", (len(at),), V), draw("token_embd.weight", "weight", dtype, (V, D))]
                if f["position"] not in ("none", "relative"):
                    made.append(Tensor("pos", "input", "i32", at))
                if f["position"] == "learned":
                    made.append(draw("pos_embd.weight", "weight", dtype, (16, D)))
                if f["position"] == "relative":
                    made.append(draw("rel_pos.rel_bias", "weight", other, (f["buckets"], H)))
                for i in range(L):
                    made += block_params(draw, "blk.%d" % i, f.get("block", "pre"), f["norm"], f["ffn"], D, H, G, d, width,
                                         f.get("bias", (0, 0, 0, 0)), f.get("ffn_bias", False), f.get("qk_norm", False), other, dtype)
                if not f.get("no_final_norm"):
                    made += norm_params(draw, "output_norm", f["norm"], D, other)
                if not f.get("tied"):
                    made += linear_params(draw, "output", V, D, dtype)
                P = values(made)
                x = P["token_embd.weight"][P["ids"]] * f.get("embedding_scale", 1.0)
                if f["position"] == "learned":
                    x = x + P["pos_embd.weight"][P["pos"]]
                if f["position"] == "sinusoidal":
                    x = x + sinusoidal(16, D)[P["pos"]]
                how = dict(dims=d, theta=f.get("theta", 10000.0)) if f["position"] == "rope" else None
                extra = {k: f[k] for k in ("softcap", "scale", "buckets", "max_distance") if k in f}
                for i in range(L):
                    window = f.get("windows", [0, 0])[i]
                    x = block(x, P, "blk.%d" % i, f.get("block", "pre"), f["norm"], f["ffn"], 1e-5,
                              lambda h, name: attention(h, P, name, runs, H, G, d, P.get("pos"), f.get("style", "adjacent"), how, 1e-5,
                                                        window=window, rel_bias=P.get("rel_pos.rel_bias"), **extra))
                if not f.get("no_final_norm"):
                    x = norm(f["norm"], x, P, "output_norm", 1e-5)
                y = F.linear(x, P["token_embd.weight" if f.get("tied") else "output.weight"])
                cap = f.get("logit_softcap")
                return made, cap * torch.tanh(y / cap) if cap else y

            settings = {k: v for k, v in f.items() if k not in ("kv", "bias", "ffn_bias")}
            case("decoder", "%s %s" % (family, dtype), other, make, runs=runs, width=D, layers=L, heads=H, kv_heads=G, head_dim=d,
                 eps=1e-5, cache="f64" if dtype == "f64" else "f32", **settings)


def main():
    for make in (linear_cases, embedding_cases, norm_cases, element_cases, ffn_cases, rope_cases, attend_cases, attention_cases,
                 block_cases, position_cases, decoder_cases):
        make()
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    files["index.json"] = ("[\n%s\n]\n" % lines).encode()
    there = set(os.listdir(FOLDER)) if os.path.isdir(FOLDER) else set()
    if "--check" in sys.argv[1:]:
        different = sorted(there ^ set(files))
        for name in sorted(there & set(files)):
            with open(os.path.join(FOLDER, name), "rb") as stream:
                if stream.read() != files[name]:
                    different.append(name)
        for name in different:
            print("differs: %s" % name)
        raise SystemExit(1 if different else 0)
    os.makedirs(FOLDER, exist_ok=True)
    for name in there - set(files):
        os.remove(os.path.join(FOLDER, name))
    for name, data in files.items():
        with open(os.path.join(FOLDER, name), "wb") as stream:
            stream.write(data)
    print("%d cases, %d files, %d bytes" % (len(cases), len(files), sum(map(len, files.values()))))


if __name__ == "__main__":
    main()
