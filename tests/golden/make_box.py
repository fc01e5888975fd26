#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Float64 oracle for the golden logits of the model in the box, models/Austen-5M.Q8_0.gguf.

    python3 tests/golden/make_box.py             writes austen-q8_0.json and austen-long-q8_0.json anew
    python3 tests/golden/make_box.py --check     compares with them; exit 1 = they differ

Reader, tokenizer and decoder are those of make_long.py, which says what they need: Python 3.9 and numpy. Takes seconds.
"""
import json
import os
import sys

import make_long

NAME = "Austen-5M.Q8_0.gguf"
PROMPTS = ("She could not", '"My dear Mr. Bennet,', "The ball was fixed for the 24th;")
STEPS, MARKS = 24, (64, 200, 250)  # the model was trained for 256 positions


def prompt_case(model, tokenizer, text):
    ids = tokenizer.encode(text)
    case = {"text": text, "ids": list(ids), "top": None, "greedy": [], "margin": []}
    for _ in range(STEPS):
        logits = model.forward(ids, [len(ids) - 1])[0]
        case["top"] = case["top"] or make_long.best(logits, 10)
        (token, first), (_, second) = make_long.best(logits, 2)
        case["greedy"].append(token)
        case["margin"].append(round(first - second, 4))
        ids.append(token)
    return case


def write(path, title, cases):
    with open(path, "w", encoding="utf-8") as f:
        head = {"model": title, "how": f"make_box.py: float64 arithmetic on the dequantized weights; top = the 10 largest logits "
                f"after the text; greedy = the next {STEPS} tokens; margin = best minus second best logit at each"}
        f.write("{\n" + "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in head.items()) + ' "logits": [\n')
        rows = ("  {\n" + ",\n".join(f"   {json.dumps(k)}: {json.dumps(v)}" for k, v in case.items()) + "\n  }" for case in cases)
        f.write(",\n".join(rows) + "\n ]\n}\n")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(here, "..", "..", "models", NAME)
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: make_box.py [--check]")
    gguf = make_long.Gguf(path)
    tokenizer, model = make_long.Tokenizer(gguf.kv), make_long.Llama(gguf)
    title = f"{NAME} ({os.path.getsize(path)} bytes)"
    cases = [prompt_case(model, tokenizer, text) for text in PROMPTS]
    ids, at = make_long.long_golden(model, tokenizer, here, MARKS[-1], MARKS)
    made = {"austen-q8_0.json": lambda to: write(to, title, cases),
            "austen-long-q8_0.json": lambda to: make_long.write(to, title, ids, at)}
    for name, put in made.items():
        old = os.path.join(here, name)
        if not sys.argv[1:]:
            put(old)
            print(f"wrote {old}")
            continue
        put(old + ".new")
        with open(old, encoding="utf-8") as one, open(old + ".new", encoding="utf-8") as two:
            same = json.load(one) == json.load(two)
        os.remove(old + ".new")
        if not same:
            sys.exit(f"{old} differs")
        print(f"{name}: the same")


if __name__ == "__main__":
    main()
