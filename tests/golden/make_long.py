#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Float64 oracle for the golden logits of a Llama model in a GGUF file.

Reads the file with a reader of its own, dequantizes exactly, tokenizes with a byte-level BPE of its own
and runs the decoder in float64 (exact softmax, no cache rounding, no chunks): nothing here is shared
with the C code that it judges. Needs Python 3.9 and numpy, nothing else:

    apt-get install python3-numpy                # or: python3 -m venv V && V/bin/pip install numpy
    python3 tests/golden/make_long.py models/SmolLM2-135M-Instruct.Q4_1.gguf

first repeats tests/golden/smollm2-q4_1.json (token lists exact, logits within 1e-6, greedy tokens and
margins), then writes tests/golden/long-q4_1.json from tests/golden/long.txt. With --check it compares
with the committed file instead of writing it. Takes about a minute and 2 GB.
"""
import argparse
import json
import mmap
import os
import re
import struct
import sys
import unicodedata

import numpy as np

# ---- GGUF v3: ggml, docs/gguf.md ------------------------------------------------------------------

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
F32, F16, Q4_0, Q4_1, Q8_0 = 0, 1, 2, 3, 8
BLOCK_BYTES = {Q4_0: 18, Q4_1: 20, Q8_0: 34}  # of 32 values


class Gguf:
    """Metadata in .kv, tensors by name: (type, shape outermost first, offset in the file)."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.data = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        self.at = 0
        magic, version, n_tensors, n_kv = self.take("<4sIQQ")
        if magic != b"GGUF" or version not in (2, 3):
            sys.exit(f"{path}: not GGUF v2 or v3")
        self.kv = {}
        for _ in range(n_kv):
            key = self.string()
            self.kv[key] = self.value(self.take("<I")[0])
        infos = []
        for _ in range(n_tensors):
            name = self.string()
            rank = self.take("<I")[0]
            dims = self.take(f"<{rank}Q")
            kind, offset = self.take("<IQ")
            infos.append((name, kind, dims[::-1], offset))
        align = self.kv.get("general.alignment", 32)
        start = (self.at + align - 1) // align * align
        self.tensors = {name: (kind, shape, start + offset) for name, kind, shape, offset in infos}

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values

    def string(self):
        n = self.take("<Q")[0]
        self.at += n
        return self.data[self.at - n : self.at].decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, n = self.take("<IQ")
            return [self.value(kind) for _ in range(n)]
        return self.take(SCALARS[kind])[0]

    def tensor(self, name):
        """Exact float64 values; every product and sum below fits in 53 bits."""
        kind, shape, offset = self.tensors[name]
        n = int(np.prod(shape))
        if kind in (F32, F16):
            plain = "<f4" if kind == F32 else "<f2"
            return np.frombuffer(self.data, plain, n, offset).astype(np.float64).reshape(shape)
        if kind not in BLOCK_BYTES:
            sys.exit(f"{name}: this script has no type {kind}")
        size = BLOCK_BYTES[kind]
        raw = np.frombuffer(self.data, np.uint8, n // 32 * size, offset).reshape(-1, size)
        d = raw[:, 0:2].copy().view("<f2").astype(np.float64)
        if kind == Q8_0:
            return (raw[:, 2:].view(np.int8) * d).reshape(shape)
        qs = raw[:, size - 16 :]
        q = np.concatenate([qs & 15, qs >> 4], axis=1).astype(np.float64)
        if kind == Q4_0:
            return ((q - 8) * d).reshape(shape)
        m = raw[:, 2:4].copy().view("<f2").astype(np.float64)
        return (q * d + m).reshape(shape)


# ---- byte-level BPE with the pre-tokenizers of GPT-2 and SmolLM ------------------------------------


def char_class(wanted):
    """Body of a regex character class of all code points whose category begins with `wanted`."""
    parts, first = [], None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code)).startswith(wanted)
        if inside and first is None:
            first = code
        elif not inside and first is not None:
            parts.append(f"\\U{first:08x}-\\U{code - 1:08x}")
            first = None
    return "".join(parts)


class Tokenizer:
    def __init__(self, kv):
        if kv["tokenizer.ggml.model"] != "gpt2" or kv["tokenizer.ggml.pre"] not in ("gpt-2", "smollm"):
            sys.exit("this script knows the tokenizer gpt2 with the pre-tokenizers gpt-2 and smollm only")
        tokens = kv["tokenizer.ggml.tokens"]
        self.ids = {text: i for i, text in enumerate(tokens)}
        self.ranks = {tuple(pair.split(" ")): i for i, pair in enumerate(kv["tokenizer.ggml.merges"])}
        control = [t for t, kind in zip(tokens, kv["tokenizer.ggml.token_type"]) if kind in (3, 4)]
        self.control = re.compile("(" + "|".join(re.escape(t) for t in sorted(control, key=len, reverse=True)) + ")")
        letter, number = char_class("L"), char_class("N")
        space = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
        # smollm cuts every digit off first; a pattern that matches nothing cuts nothing off
        self.digit = re.compile(f"([{number}])" if kv["tokenizer.ggml.pre"] == "smollm" else "(?!)")
        self.piece = re.compile(
            f"'s|'t|'re|'ve|'m|'ll|'d| ?[{letter}]+| ?[{number}]+| ?[^{space}{letter}{number}]+"
            f"|[{space}]+(?![^{space}])|[{space}]+"
        )
        # GPT-2's alphabet: printable Latin-1 bytes stand for themselves, the others follow from 256 on
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [b for b in range(256) if b not in printable]
        self.alphabet = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}

    def merge(self, piece):
        parts = [self.alphabet[b] for b in piece.encode("utf-8")]
        while len(parts) > 1:
            pairs = [(self.ranks.get(pair, len(self.ranks)), i) for i, pair in enumerate(zip(parts, parts[1:]))]
            rank, i = min(pairs)
            if rank == len(self.ranks):
                break
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        return [self.ids[part] for part in parts]

    def encode(self, text):
        ids = []
        for i, span in enumerate(self.control.split(text)):
            if i % 2:
                ids.append(self.ids[span])
                continue
            for part in self.digit.split(span):  # each piece is the second pattern's whole subject
                for piece in self.piece.findall(part):
                    ids += self.merge(piece)
        return ids


# ---- Llama decoder ---------------------------------------------------------------------------------


class Llama:
    def __init__(self, gguf):
        if gguf.kv["general.architecture"] != "llama":
            sys.exit("this script knows the architecture llama only")
        self.file = gguf
        key = lambda name: gguf.kv["llama." + name]
        self.layers, self.width = key("block_count"), key("embedding_length")
        self.heads, self.kv_heads = key("attention.head_count"), key("attention.head_count_kv")
        self.head_dim = self.width // self.heads
        self.eps = float(key("attention.layer_norm_rms_epsilon"))
        self.theta = float(gguf.kv.get("llama.rope.freq_base", 10000.0))
        if gguf.kv.get("llama.rope.dimension_count", self.head_dim) != self.head_dim:
            sys.exit("this script rotates whole heads only")
        self.embedding = gguf.tensor("token_embd.weight")
        self.head = gguf.tensor("output.weight") if "output.weight" in gguf.tensors else self.embedding

    def norm(self, x, name):
        gamma = self.file.tensor(name)
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.eps) * gamma

    def rope(self, x):
        """x [T, heads, d]; adjacent pairs (2i, 2i + 1), as GGUF stores Q and K of llama."""
        t, _, d = x.shape
        angle = np.arange(t)[:, None] * self.theta ** (-2.0 * np.arange(d // 2) / d)
        cos, sin = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
        a, b = x[..., 0::2], x[..., 1::2]
        return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)

    def attention(self, q, k, v):
        """q [T, H, d], k and v [T, G, d]; query head h reads kv head h // (H / G)."""
        t = q.shape[0]
        hidden = np.triu(np.ones((t, t), bool), 1)
        out = np.empty_like(q)
        for h in range(self.heads):
            g = h // (self.heads // self.kv_heads)
            scores = q[:, h] @ k[:, g].T / np.sqrt(self.head_dim)
            scores[hidden] = -np.inf
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[:, h] = weights / weights.sum(axis=1, keepdims=True) @ v[:, g]
        return out.reshape(t, -1)

    def forward(self, ids, wanted):
        """Logits [len(wanted), V] after the tokens at the indices `wanted`."""
        w = self.file.tensor
        t, d = len(ids), self.head_dim
        x = self.embedding[ids]
        for i in range(self.layers):
            blk = f"blk.{i}."
            h = self.norm(x, blk + "attn_norm.weight")
            q = self.rope((h @ w(blk + "attn_q.weight").T).reshape(t, self.heads, d))
            k = self.rope((h @ w(blk + "attn_k.weight").T).reshape(t, self.kv_heads, d))
            v = (h @ w(blk + "attn_v.weight").T).reshape(t, self.kv_heads, d)
            x = x + self.attention(q, k, v) @ w(blk + "attn_output.weight").T
            h = self.norm(x, blk + "ffn_norm.weight")
            gate = h @ w(blk + "ffn_gate.weight").T
            up = h @ w(blk + "ffn_up.weight").T
            x = x + (gate / (1.0 + np.exp(-gate)) * up) @ w(blk + "ffn_down.weight").T
        return self.norm(x[wanted], "output_norm.weight") @ self.head.T


def best(logits, n):
    order = np.argsort(-logits, kind="stable")[:n]
    return [[int(i), round(float(logits[i]), 6)] for i in order]


# ---- the two jobs ----------------------------------------------------------------------------------


def repeat_golden(model, tokenizer, path):
    """Exits unless this script gives what the golden file holds."""
    with open(path, encoding="utf-8") as f:
        golden = json.load(f)
    for case in golden["tokens"]:
        if tokenizer.encode(case["text"]) != case["ids"]:
            sys.exit(f"tokens of {case['text']!r}: {tokenizer.encode(case['text'])}, golden {case['ids']}")
    worst = worst_margin = 0.0
    for case in golden["logits"]:
        ids = case["ids"] + case["greedy"][:-1]
        first = len(case["ids"]) - 1
        logits = model.forward(ids, range(first, len(ids)))
        for id, value in case["top"]:
            worst = max(worst, abs(logits[0, id] - value))
        if [id for id, _ in best(logits[0], 10)] != [id for id, _ in case["top"]]:
            sys.exit(f"{case['text']!r}: other best tokens: {best(logits[0], 10)}")
        for row, token, margin in zip(logits, case["greedy"], case["margin"]):
            (id, one), (_, two) = best(row, 2)
            if id != token:
                sys.exit(f"{case['text']!r}: greedy token {id}, golden {token}")
            worst_margin = max(worst_margin, abs(one - two - margin))
    print(f"{os.path.basename(path)}: {len(golden['tokens'])} token lists equal, logits within {worst:.1e}, "
          f"greedy tokens equal, margins within {worst_margin:.1e}")
    if worst > 1e-6 or worst_margin > 1e-4:
        sys.exit("that is too far")


def long_golden(model, tokenizer, here, count, marks):
    # newline="" keeps the file's exact bytes
    with open(os.path.join(here, "long.txt"), encoding="utf-8", newline="") as f:
        ids = tokenizer.encode(f.read())
    if len(ids) < count:
        sys.exit(f"long.txt has {len(ids)} tokens, {count} are needed")
    ids = ids[:count]
    logits = model.forward(ids, [n - 1 for n in marks])
    return ids, [{"n": n, "top": best(row, 10)} for n, row in zip(marks, logits)]


def write(path, model, ids, at):
    lines = [", ".join(map(str, ids[i : i + 15])) for i in range(0, len(ids), 15)]
    tops = [f'  {{"n": {a["n"]}, "top": {json.dumps(a["top"])}}}' for a in at]
    with open(path, "w", encoding="utf-8") as f:
        f.write('{\n "model": ' + json.dumps(model) + ',\n'
                ' "how": "make_long.py: float64 arithmetic on the dequantized weights; ids = the first tokens of '
                'long.txt; at = the 10 largest logits after the first n of them",\n'
                ' "ids": [\n  ' + ",\n  ".join(lines) + '\n ],\n "at": [\n' + ",\n".join(tops) + "\n ]\n}\n")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Float64 oracle of the golden logits.")
    parser.add_argument("model")
    parser.add_argument("--check", action="store_true", help="compare with the committed file, write nothing")
    options = parser.parse_args()

    gguf = Gguf(options.model)
    tokenizer, model = Tokenizer(gguf.kv), Llama(gguf)
    repeat_golden(model, tokenizer, os.path.join(here, "smollm2-q4_1.json"))
    ids, at = long_golden(model, tokenizer, here, 600, [64, 300, 600])
    path = os.path.join(here, "long-q4_1.json")
    if not options.check:
        write(path, "SmolLM2-135M-Instruct Q4_1 (98362432 bytes)", ids, at)
        print(f"wrote {path}")
        return
    with open(path, encoding="utf-8") as f:
        old = json.load(f)
    worst = max(abs(a[1] - b[1]) for o, n in zip(old["at"], at) for a, b in zip(o["top"], n["top"]))
    tokens = lambda marks: [[id for id, _ in mark["top"]] for mark in marks]
    if old["ids"] != ids or tokens(old["at"]) != tokens(at) or worst > 1e-6:
        sys.exit(f"{path} differs (logits by {worst:.1e})")
    print(f"{os.path.basename(path)}: the same, logits within {worst:.1e}")


if __name__ == "__main__":
    main()
