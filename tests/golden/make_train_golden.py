#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes torch_train/index.json and torch_train/*.npy beside itself: what training must give, by PyTorch in float64.

    apt-get install python3-torch
    /usr/bin/python3 tests/golden/make_train_golden.py            writes the folder anew
    /usr/bin/python3 tests/golden/make_train_golden.py --check    compares with what is there; exit 1 = differs

For each stack of two blocks of tests/train/stacks.c: the mean loss before each of ten steps and after the last, the
gradients before the first (of the mean over the rows that have a target), the global norm of each step, and the parameters
after the tenth. Autograd makes the gradients and torch.optim.AdamW the steps; the layers are those of make_golden.py.
One .npy a stack: [2, n], gradients and parameters, the tensors one after another in the order of the index.

Parameters start as numbers of a formula (start() below; torch_train_cases.c has the same), which are exact in f32; ids and
targets are formulas too. Debian 12's torch 1.13.0 made the files; a second run gives the same bytes.
"""
import json
import math
import os
import sys

import torch
import torch.nn.functional as F

import make_golden as layers

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_train")
V, D, LAYERS, H, d, WIDTH, EPS, POSITIONS = 7, 6, 2, 4, 2, 5, 1e-3, 8
LENGTHS = (5, 1, 7)  # of the sequences of a run
ROWS = sum(LENGTHS)
RATES = [0.0025, 0.005, 0.0075, 0.01, 0.01, 0.009, 0.008, 0.006, 0.004, 0.002]

# kv: key/value heads. eps of AdamW: where a bias of k has no gradient but rounding (softmax takes it out), a usual 1e-8
# would make steps of it.
STACKS = {
    "Llama, tied": dict(kv=2, position="rope", norm="rms", ffn="swiglu", tied=True, adamw=dict(clip=2.5)),
    "GPT-2": dict(kv=4, position="learned", norm="layer", ffn="gelu_tanh", bias=True, tied=True,
                  adamw=dict(clip=0.25, eps=1e-5, decay=0.5)),
    "Gemma 2": dict(kv=2, position="rope", style="halves", norm="rms", ffn="geglu", block="pre_post", softcap=2.0,
                    logit_softcap=3.0, embedding_scale=2.449489742783178, window=2, qk_norm=True,
                    adamw=dict(betas=(0.9, 0.999))),
    "encoder": dict(kv=2, position="sinusoidal", norm="layer", ffn="gelu", block="post", bias=True, bidirectional=True,
                    no_final_norm=True, adamw=dict(clip=0.5, eps=1e-5)),
    "T5, MQA": dict(kv=1, position="relative", norm="rms", ffn="relu", scale=1.0, buckets=4, max_distance=3,
                    adamw=dict(decay=0.01)),
    "GLU without": dict(kv=2, position="none", norm="none", ffn="glu", adamw=dict(betas=(0.5, 0.75), decay=1.0)),
    "SiLU": dict(kv=2, position="rope", norm="rms", ffn="silu", adamw=dict(clip=100.0)),
}


def random(seed, index):
    """SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), in [-1, 1)."""
    most = (1 << 64) - 1
    z = (seed * 0x9E3779B97F4A7C15 & most) ^ ((index + 1) * 0xD1B54A32D192ED03 & most)
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & most
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & most
    z ^= z >> 31
    return (z >> 11) / 4503599627370496.0 - 1


def start(number, name, shape):
    """Of parameter `number` of its stack, counted from 1."""
    base = 1.0 if name.endswith("norm.weight") else 0.0
    values = [base + math.floor(1024 * random(number, i)) / 2048 for i in range(math.prod(shape))]
    return torch.tensor(values).reshape(shape).requires_grad_()


def shapes(s):
    """Name -> shape, in the order of the golden files; the functions of make_golden.py name and shape the tensors."""

    def draw(name, role, dtype, shape, scale=1.0, shift=0.0):
        return layers.Tensor(name, role, dtype, layers.np.zeros(shape))

    made = [draw("token_embd.weight", "weight", "f64", (V, D))]
    if s["position"] == "learned":
        made.append(draw("pos_embd.weight", "weight", "f64", (POSITIONS, D)))
    if s["position"] == "relative":
        made.append(draw("rel_pos.rel_bias", "weight", "f64", (s["buckets"], H)))
    bias = s.get("bias", False)
    for i in range(LAYERS):
        made += layers.block_params(draw, "blk.%d" % i, s.get("block", "pre"), s["norm"], s["ffn"], D, H, s["kv"], d, WIDTH,
                                    (bias,) * 4, bias, s.get("qk_norm", False), "f64", "f64")
    if not s.get("no_final_norm"):
        made += layers.norm_params(draw, "output_norm", s["norm"], D, "f64")
    if not s.get("tied"):
        made += layers.linear_params(draw, "output", V, D, "f64")
    return {t.name: tuple(t.value.shape) for t in made}


def batch(step):
    """ids, positions and targets [ROWS] of a step: the next id, none at the end of a sequence and in row 8."""
    ids = [(3 * i * i + 5 * step + i) % V for i in range(ROWS)]
    positions = [p for n in LENGTHS for p in range(n)]
    ends = [sum(LENGTHS[: i + 1]) - 1 for i in range(len(LENGTHS))]
    targets = [-1 if i in ends or i == 8 else ids[i + 1] for i in range(ROWS)]
    return torch.tensor(ids), torch.tensor(positions), torch.tensor(targets)


def loss(s, P, step):
    ids, positions, targets = batch(step)
    runs = [[[i, 0, n] for i, n in enumerate(LENGTHS)]]
    how = dict(dims=d) if s["position"] == "rope" else None
    extra = {k: s[k] for k in ("softcap", "scale", "buckets", "max_distance", "window", "bidirectional") if k in s}
    x = P["token_embd.weight"][ids] * s.get("embedding_scale", 1.0)
    if s["position"] == "learned":
        x = x + P["pos_embd.weight"][positions]
    if s["position"] == "sinusoidal":
        x = x + layers.sinusoidal(POSITIONS, D)[positions]

    def attention(h, name):
        return layers.attention(h, P, name, runs, H, s["kv"], d, positions, s.get("style", "adjacent"), how, EPS,
                                rel_bias=P.get("rel_pos.rel_bias"), **extra)

    for i in range(LAYERS):
        x = layers.block(x, P, "blk.%d" % i, s.get("block", "pre"), s["norm"], s["ffn"], EPS, attention)
    if not s.get("no_final_norm"):
        x = layers.norm(s["norm"], x, P, "output_norm", EPS)
    logits = F.linear(x, P["token_embd.weight" if s.get("tied") else "output.weight"])
    if "logit_softcap" in s:
        logits = s["logit_softcap"] * torch.tanh(logits / s["logit_softcap"])
    return F.cross_entropy(logits, targets, ignore_index=-1)


def flat(tensors):
    return torch.cat([t.detach().flatten() for t in tensors])


def train(name, s):
    P = {n: start(i + 1, n, shape) for i, (n, shape) in enumerate(shapes(s).items())}
    adamw = dict(dict(betas=(0.9, 0.95), eps=1e-8, decay=0.1, clip=0.0), **s["adamw"])
    # matrices that multiply, and no table that is looked up: a tied head is one
    decays = [n for n in P if n == "output.weight" or n.endswith(".weight") and P[n].dim() == 2 and n.startswith("blk.")]
    groups = [{"params": [P[n] for n in decays], "weight_decay": adamw["decay"]},
              {"params": [P[n] for n in P if n not in decays], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1.0, betas=adamw["betas"], eps=adamw["eps"])
    losses, norms, first = [], [], None
    for step, rate in enumerate(RATES):
        optimizer.zero_grad()
        value = loss(s, P, step)
        value.backward()
        losses.append(value.item())
        first = flat(p.grad for p in P.values()) if first is None else first
        norm = torch.nn.utils.clip_grad_norm_(list(P.values()), math.inf).item()  # measures and leaves all as it is
        norms.append(norm)
        for p in P.values():
            p.grad *= min(1.0, adamw["clip"] / norm) if adamw["clip"] else 1.0
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    losses.append(loss(s, P, len(RATES)).item())
    if adamw["clip"]:
        print("%s: clipped in %d of %d steps" % (name, sum(n > adamw["clip"] for n in norms), len(norms)))
    file = "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split()) + ".npy"
    case = dict(name=name, file=file, beta1=adamw["betas"][0], beta2=adamw["betas"][1], eps=adamw["eps"],
                decay=adamw["decay"], clip=adamw["clip"], rates=RATES, losses=losses, norms=norms,
                parameters=[[n, list(p.shape)] for n, p in P.items()])
    return case, layers.npy(torch.stack([first, flat(P.values())]).numpy())


def main():
    files, cases = {}, []
    for name, s in STACKS.items():
        case, data = train(name, s)
        cases.append(json.dumps(case, separators=(",", ":")))
        files[case["file"]] = data
    files["index.json"] = ("[\n%s\n]\n" % ",\n".join(cases)).encode()
    if "--check" in sys.argv[1:]:
        different = [n for n, data in sorted(files.items()) if open(os.path.join(FOLDER, n), "rb").read() != data]
        for name in different:
            print("differs: %s" % name)
        raise SystemExit(1 if different else 0)
    os.makedirs(FOLDER, exist_ok=True)
    for name, data in files.items():
        with open(os.path.join(FOLDER, name), "wb") as stream:
            stream.write(data)
    print("%d stacks, %d bytes" % (len(cases), sum(map(len, files.values()))))


if __name__ == "__main__":
    main()
