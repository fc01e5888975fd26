#!/bin/sh
# SPDX-License-Identifier: MIT
# The Python package tokenizers, given the vocabulary that tfm train-tokenizer wrote, cuts texts into the
# same ids. Skipped without the package (pip install tokenizers; TFM_TEST_PYTHON names a python that has it).
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
python=${TFM_TEST_PYTHON:-python3}
"$python" -c 'import tokenizers' 2>/dev/null || { echo 'no Python package tokenizers'; exit 77; }

text=$srcdir/tests/golden/long.txt
cat >peer.py <<'END'
"""Prints the ids of the file argv[2] under the tokenizer of the GGUF file argv[1]."""
import struct
import sys

from tokenizers import Tokenizer, models, pre_tokenizers

data = open(sys.argv[1], "rb").read()
place = 16
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def number(form):
    global place
    value = struct.unpack_from("<" + form, data, place)[0]
    place += struct.calcsize("<" + form)
    return value


def value(kind):
    global place
    if kind == 8:
        size = number("Q")
        place += size
        return data[place - size : place].decode("utf-8")
    if kind == 9:
        kind = number("I")
        return [value(kind) for _ in range(number("Q"))]
    return number(NUMBERS[kind])


keys = {}
for _ in range(number("Q")):
    key = value(8)
    keys[key] = value(number("I"))
vocabulary = {token: i for i, token in enumerate(keys["tokenizer.ggml.tokens"])}
merges = [tuple(merge.split(" ")) for merge in keys["tokenizer.ggml.merges"]]
tokenizer = Tokenizer(models.BPE(vocabulary, merges))
steps = [pre_tokenizers.ByteLevel(add_prefix_space=False)]
if keys["tokenizer.ggml.pre"] == "smollm":
    steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
print(*tokenizer.encode(open(sys.argv[2], "rb").read().decode("utf-8")).ids)
END
printf 'In 2024, 3.14 x 100! don'\''t\n  two  spaces \n\n\tx caf\303\251 \346\227\245\346\234\254 \360\237\230\200 \302\240 end  ' >odd.txt
for pre in gpt-2 smollm; do
    call train-tokenizer --data "$text" --vocab 480 --out "$pre.gguf" --pre "$pre"
    verdict $code "a vocabulary cut by $pre"
    for file in "$text" odd.txt; do
        "$python" peer.py "$pre.gguf" "$file" >want 2>"$err"
        call tokenize -m "$pre.gguf" -f "$file"
        test -s want && cmp -s want "$out"
        verdict $? "$pre: the same ids of $(basename "$file")"
    done
done
finish
