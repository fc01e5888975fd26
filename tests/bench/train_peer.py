#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training steps of a Llama-shaped decoder in PyTorch (eager, float32): the peer of tests/bench/train.sh.

    train_peer.py CONFIG.json STEPS THREADS

CONFIG.json is one of `tfm train`. Prints the tokens a second of every step: forward, backward, clipping of the norm,
AdamW. Ids are made up, which changes nothing about the time. Exit 77 without torch."""

import json
import math
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError:
    print("no torch (Debian package: python3-torch)", file=sys.stderr)
    sys.exit(77)


class Norm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, heads, groups = c["width"], c["heads"], c["kv_heads"]
        self.heads, self.groups, self.dim = heads, groups, width // heads
        self.norm, self.ffn_norm = Norm(width, c["eps"]), Norm(width, c["eps"])
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, groups * self.dim, bias=False)
        self.v = nn.Linear(width, groups * self.dim, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, c["ffn_width"], bias=False)
        self.up = nn.Linear(width, c["ffn_width"], bias=False)
        self.down = nn.Linear(c["ffn_width"], width, bias=False)

    def turn(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def attend(self, x, cos, sin, mask):
        n, t, width = x.shape
        q = self.turn(self.q(x).view(n, t, self.heads, self.dim).transpose(1, 2), cos, sin)
        k = self.turn(self.k(x).view(n, t, self.groups, self.dim).transpose(1, 2), cos, sin)
        v = self.v(x).view(n, t, self.groups, self.dim).transpose(1, 2)
        share = self.heads // self.groups
        k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = ((q @ k.transpose(2, 3)) / math.sqrt(self.dim) + mask).softmax(-1) @ v
        return self.o(y.transpose(1, 2).reshape(n, t, width))

    def forward(self, x, cos, sin, mask):
        x = x + self.attend(self.norm(x), cos, sin, mask)
        h = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embedding = nn.Embedding(c["vocab"], c["width"])
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["layers"]))
        self.norm = Norm(c["width"], c["eps"])
        length, dim = c["train"]["length"], c["width"] // c["heads"]
        angle = torch.outer(torch.arange(length).float(), 10000.0 ** (-torch.arange(0, dim, 2) / dim))
        self.cos, self.sin = angle.cos(), angle.sin()
        self.mask = torch.full((length, length), -math.inf).triu(1)

    def forward(self, ids, targets):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, self.mask)
        logits = self.norm(x) @ self.embedding.weight.t()  # the head is tied
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    with open(sys.argv[1]) as file:
        config = json.load(file)
    steps, train = int(sys.argv[2]), config["train"]
    torch.set_num_threads(int(sys.argv[3]))
    torch.manual_seed(1)
    model = Decoder(config)
    n = sum(p.numel() for p in model.parameters())
    print(f"# torch {torch.__version__}, {n} parameters", flush=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1)
    shape = (train["sequences"], train["length"] + 1)
    for _ in range(steps):
        ids = torch.randint(config["vocab"], shape)
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = model(ids[:, :-1], ids[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        print(f"{train['sequences'] * train['length'] / (time.perf_counter() - begin):.2f}", flush=True)


if __name__ == "__main__":
    main()
