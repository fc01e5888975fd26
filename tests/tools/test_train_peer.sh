#!/bin/sh
# SPDX-License-Identifier: MIT
# What others make of a model that tfm train made: llama.cpp loads the GGUF file, as it is and in every type, and continues
# with the same greedy text, whichever way the rotary pairs were trained; the Python package safetensors reads the folder
# of a Llama, whose logits are those of the GGUF file, and of a decoder that is none. What is not there is left out;
# skipped when nothing is. TFM_PEER_LLAMA names the folder of llama.cpp's programs, TFM_TEST_PYTHON a python with the
# package.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
TFM_BACKEND=reference
export TFM_BACKEND
python=${TFM_TEST_PYTHON:-python3}
simple=
if test -z "${TFM_PEER_LLAMA:-}"; then
    simple=$(command -v llama-simple)
elif test -x "$TFM_PEER_LLAMA/llama-simple"; then
    simple=$TFM_PEER_LLAMA/llama-simple
fi
package=
"$python" -c 'import safetensors.numpy' 2>/dev/null && package=yes
test -n "$simple$package" || {
    echo 'neither llama.cpp (TFM_PEER_LLAMA) nor the Python package safetensors (TFM_TEST_PYTHON)'
    exit 77
}
peer_run() { LD_LIBRARY_PATH=${TFM_PEER_LLAMA:-}:${LD_LIBRARY_PATH:-} "$@" </dev/null; }

awk 'BEGIN {
    n = split("cat dog bird fish child", noun); m = split("sees hears follows finds", verb)
    for (i = 0; i < 2600; i++) {
        x = (x * 1103515245 + 12345) % 2147483648
        printf "The %s %s the %s%s", noun[int(x / 7) % n + 1], verb[int(x / 41) % m + 1], noun[int(x / 97) % n + 1],
            i % 5 == 4 ? ".\n" : ". "
    }
}' >text.txt
# train NAME KEYS: a decoder of 290 tokens with these keys beside
train() {
    printf '{"vocab": 290, "context": 64, "width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "ffn_width": 64, "eps": 1e-5, %s
        "train": {"length": 32, "sequences": 4, "steps": 16, "rate": 0.01, "warmup": 2}}' "$2" >"$1.json"
    call train --data text.txt --config "$1.json" --out "$1"
    verdict $code "training: $1"
}
train pairs '"tied": true,'
train halves '"rope_style": "halves", "rope_theta": 500, "head_dim": 16, "q_bias": true, "k_bias": true, "v_bias": true, "o_bias": true,'
train other '"norm": "layer", "position": "learned", "ffn": "relu", "up_bias": true,'

text='The cat sees the'
# same_text FILE: llama.cpp is greedy, and writes one line end more
same_text() {
    call run -m "$1" -p "$text" -n 24
    cp "$out" ours
    peer_run "$simple" -m "$1" -n 24 "$text" >theirs 2>"$err"
    test "$(cat ours)" = "$(cat theirs)" && test "$(wc -c <theirs)" -gt 40
}
if test -n "$simple"; then
    for name in pairs halves; do
        same_text $name/model.gguf
        verdict $? "llama.cpp continues $name/model.gguf with the same text"
    done
    for type in f16 bf16 q8_0 q4_1; do
        call convert -m halves/model.gguf --out "$type.gguf" --type "$type"
        test $code -eq 0 && same_text "$type.gguf"
        verdict $? "llama.cpp continues it as $type with the same text"
    done
fi

# logits_of MODEL: as lines of numbers; the header of the file has 128 bytes
logits_of() {
    call logits -m "$1" -p "$text" -o logits.npy
    test $code -eq 0 && od -A n -t f4 -v -w4 -j 128 logits.npy
}
for name in pairs halves; do
    call convert -m $name/model.gguf --out $name-folder
    logits_of $name/model.gguf >a
    logits_of $name-folder >b
    test "$(lines a)" -eq 290 && paste a b | awk '{ d = $1 - $2; if (d > 1e-4 || d < -1e-4) bad = 1 } END { exit bad }'
    verdict $? "$name: the logits of the folder are those of the GGUF file"
done

if test -n "$package"; then
    call inspect --json --config other/model/config.json
    "$python" - "$out" other/model pairs-folder >said 2>"$err" <<'END'
import json
import sys

from safetensors.numpy import load_file

# a decoder that is no Llama: what tfm inspect lists, and nothing else
with open(sys.argv[1], encoding="utf-8") as listed:
    want = {t["name"]: tuple(t["shape"]) for t in json.load(listed)["tensors"] if t["kind"] == "parameter"}
have = {name: t.shape for name, t in load_file(sys.argv[2] + "/model.safetensors").items()}
assert have == want, (sorted(have), sorted(want))
assert "pos_embd.weight" in have and "blk.1.ffn.up.bias" in have
with open(sys.argv[2] + "/config.json", encoding="utf-8") as file:
    config = json.load(file)
assert config["model_type"] == "tfm" and config["decoder"]["ffn"] == "relu", config
# a Llama
with open(sys.argv[3] + "/config.json", encoding="utf-8") as file:
    config = json.load(file)
tensors = load_file(sys.argv[3] + "/model.safetensors")
assert tensors["model.embed_tokens.weight"].shape == (config["vocab_size"], config["hidden_size"])
assert len(tensors) == 2 + 9 * config["num_hidden_layers"], sorted(tensors)
assert all(t.dtype == "float32" for t in tensors.values())
END
    verdict $? 'safetensors reads both folders'
fi
finish
