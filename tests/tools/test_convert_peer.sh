#!/bin/sh
# SPDX-License-Identifier: MIT
# What others make of what tfm convert writes: llama.cpp loads every GGUF file and continues with the same greedy text,
# and quantizes an f32 file to the same bits; the Python packages safetensors and tokenizers read the folder. What is not
# there is left out; skipped when nothing is. TFM_PEER_LLAMA names the folder of llama.cpp's programs, TFM_TEST_PYTHON
# a python with the packages.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
TFM_BACKEND=reference
export TFM_BACKEND
python=${TFM_TEST_PYTHON:-python3}
peer() { # NAME: path of a program of the peer, nothing without
    if test -n "${TFM_PEER_LLAMA:-}"; then
        if test -x "$TFM_PEER_LLAMA/$1"; then echo "$TFM_PEER_LLAMA/$1"; fi
    else
        command -v "$1"
    fi
}
simple=$(peer llama-simple) quantize=$(peer llama-quantize)
packages=
"$python" -c 'import safetensors.numpy, tokenizers' 2>/dev/null && packages=yes
test -n "$simple$quantize$packages" || {
    echo 'neither llama.cpp (TFM_PEER_LLAMA) nor the Python packages safetensors and tokenizers (TFM_TEST_PYTHON)'
    exit 77
}
peer_run() { LD_LIBRARY_PATH=${TFM_PEER_LLAMA:-}:${LD_LIBRARY_PATH:-} "$@" </dev/null; }

toy toy.gguf
call convert -m toy.gguf --out folder
call convert -m folder --out f32.gguf
verdict $code 'there and back'
text='Hello world'
if test -n "$simple"; then
    for type in f32 f16 bf16 q8_0 q4_1; do
        call convert -m folder --out "$type.gguf" --type "$type"
        call run -m "$type.gguf" -p "$text" -n 24
        cp "$out" ours
        # greedy; one line end more. (llama-completion loses the end of its output now and then.)
        peer_run "$simple" -m "$type.gguf" -n 24 "$text" >theirs 2>"$err"
        test "$(cat ours)" = "$(cat theirs)" && test -s theirs
        verdict $? "llama.cpp continues the $type file with the same text"
    done
fi
if test -n "$quantize"; then
    for type in q8_0 q4_1 q4_0; do
        call convert -m folder --out ours.gguf --type "$type"
        peer_run "$quantize" --pure --token-embedding-type q8_0 --output-tensor-type q8_0 f32.gguf theirs.gguf \
            "$type" 1 >"$out" 2>"$err"
        # as f32 in the same order, so that only the values count
        call convert -m ours.gguf --out a
        call convert -m theirs.gguf --out b
        test $code -eq 0 && cmp -s a/model.safetensors b/model.safetensors
        verdict $? "llama.cpp quantizes to the same $type"
    done
fi
if test -n "$packages"; then
    "$python" - folder toy.gguf >"$out" 2>"$err" <<'END'
import json
import sys

from safetensors.numpy import load_file
from tokenizers import Tokenizer

tensors = load_file(sys.argv[1] + "/model.safetensors")
config = json.load(open(sys.argv[1] + "/config.json", encoding="utf-8"))
assert tensors["model.embed_tokens.weight"].shape == (config["vocab_size"], config["hidden_size"])
assert len(tensors) == 3 + 9 * config["num_hidden_layers"], sorted(tensors)
assert all(t.dtype == "float32" for t in tensors.values())
# rows of q: the halves of a head here, pairs in the GGUF file
q = tensors["model.layers.1.self_attn.q_proj.weight"]
d = config["head_dim"]
pairs = q.reshape(-1, 2, d // 2, q.shape[1]).swapaxes(1, 2).reshape(q.shape)
assert pairs.tobytes() in open(sys.argv[2], "rb").read()
assert q.tobytes() not in open(sys.argv[2], "rb").read()
print(*Tokenizer.from_file(sys.argv[1] + "/tokenizer.json").encode("the <|im_end|> In 2024, caf\u00e9").ids)
END
    verdict $? 'safetensors and tokenizers read the folder'
    cp "$out" want
    call tokenize -m toy.gguf -p 'the <|im_end|> In 2024, café'
    cmp -s "$out" want
    verdict $? 'tokenizers gives the same ids'
fi
finish
