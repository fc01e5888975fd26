#!/bin/sh
# SPDX-License-Identifier: MIT
# Trains eleven small models with three seeds each on the same tokens in the same order, one choice changed at a time, and prints
# the table of docs/lessons/README.md. Runs that are done already are not done again; one that was interrupted goes on.
#   compare.sh TFM CORPUS OUT [SEEDS]
#     TFM     the program (./tfm)
#     CORPUS  a folder with train/*.txt and persuasion.txt, as models/austen.py writes it
#     OUT     where runs, table and pictures go
# STEPS, LENGTH, SEQUENCES, MODELS (only these, by name), DEAD_UNITS (the program made of dead_units.c) may be set in the
# environment. Small models train faster two at a time with TFM_THREADS=1 than one with two threads: call it twice, with other seeds.
set -eu
test $# -ge 3 || { sed -n '3,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
tfm=$1 corpus=$2 out=$3
seeds=${4:-1 2 3}
steps=${STEPS:-1000} length=${LENGTH:-128} sequences=${SEQUENCES:-16}
vocab=512 width=96 layers=4 heads=6 head_dim=16
mkdir -p "$out"
test -f "$out/tokenizer.gguf" ||
    "$tfm" train-tokenizer --data "$corpus/train" --vocab $vocab --out "$out/tokenizer.gguf"

# name | norm | block | ffn | ffn_width | position | kv_heads | what it is
models() {
    cat <<'END'
base|rms|pre|swiglu|256|rope|2|RMSNorm, pre-norm, SwiGLU, RoPE, GQA
relu|rms|pre|relu|384|rope|2|ReLU instead of SwiGLU, equal parameters
layernorm|layer|pre|swiglu|256|rope|2|LayerNorm instead of RMSNorm
learned|rms|pre|swiglu|256|learned|2|learned positions instead of RoPE
sinusoidal|rms|pre|swiglu|256|sinusoidal|2|sinusoidal positions instead of RoPE
none|rms|pre|swiglu|256|none|2|no positions
post|rms|post|swiglu|256|rope|2|post-norm instead of pre-norm
mha|rms|pre|swiglu|256|rope|6|MHA instead of GQA
mha-equal|rms|pre|swiglu|216|rope|6|MHA, equal parameters
mqa|rms|pre|swiglu|256|rope|1|MQA instead of GQA
mqa-equal|rms|pre|swiglu|264|rope|1|MQA, equal parameters
END
}

config() { # norm block ffn ffn_width position kv_heads seed
    # embeddings begin small; beside sinusoids, which are about 1, they would not be seen: they are multiplied by the root
    # of the width, as Vaswani et al. do (arXiv:1706.03762, section 3.4)
    scale=0
    test "$5" = sinusoidal && scale=$(awk "BEGIN { print sqrt($width) }")
    cat <<END
{
  "vocab": $vocab, "context": $length, "width": $width, "layers": $layers, "heads": $heads, "head_dim": $head_dim,
  "kv_heads": $6, "ffn_width": $4, "norm": "$1", "block": "$2", "ffn": "$3", "position": "$5", "embedding_scale": $scale, "eps": 1e-5, "tied": true,
  "train": {
    "length": $length, "sequences": $sequences, "steps": $steps, "rate": 4e-3, "final_rate": 2e-4, "warmup": $((steps / 10)),
    "seed": $7, "held_out": 0, "validate_every": $(((steps + 7) / 8)), "save_every": 250
  }
}
END
}

last() { sed -n 's/.*"validation_loss": \([0-9.]*\).*/\1/p' "$1/metrics.jsonl" | tail -n 1; }
speed() { sed -n 's/.*"tok_s": \([0-9.]*\).*/\1/p' "$1/metrics.jsonl" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

for seed in $seeds; do
    models | while IFS='|' read -r name norm block ffn ffn_width position kv_heads _; do
        run=$out/$name-$seed
        test -f "$run/done" && continue
        case " ${MODELS:-$name} " in *" $name "*) ;; *) continue ;; esac
        mkdir -p "$run"
        config "$norm" "$block" "$ffn" "$ffn_width" "$position" "$kv_heads" "$seed" >"$run/config.json"
        echo "$run" >&2
        "$tfm" train --data "$corpus/train" --validation "$corpus/persuasion.txt" --tokenizer "$out/tokenizer.gguf" \
            --config "$run/config.json" --out "$run" --resume >"$run/log" 2>&1 </dev/null || { tail -n 3 "$run/log" >&2; exit 1; }
        sed -n 's/^tfm train: \([0-9]*\) parameters.*/\1/p' "$run/log" | head -n 1 >"$run/parameters"
        : >"$run/done"
    done
done

# mean, and half the distance between the best and the worst seed
table() {
    echo '| model | parameters | held-out loss, mean (of seeds) | spread | tokens/s | KV bytes a token (f16) |'
    echo '|---|---|---|---|---|---|'
    models | while IFS='|' read -r name _ _ _ _ _ kv_heads text; do
        for seed in $seeds; do
            test -f "$out/$name-$seed/done" && echo "$(last "$out/$name-$seed") $(speed "$out/$name-$seed")"
        done | awk -v text="$text" -v n="$(cat "$out/$name-${seeds%% *}/parameters" 2>/dev/null)" \
            -v kv=$((2 * layers * kv_heads * head_dim * 2)) '
            { sum += $1; tok += $2; if (NR == 1 || $1 < low) low = $1; if (NR == 1 || $1 > high) high = $1
              list = list (NR > 1 ? ", " : "") sprintf("%.4f", $1) }
            END { if (NR) printf "| %s | %d | %.4f (%s) | %.4f | %.0f | %d |\n", text, n, sum / NR, list, (high - low) / 2, tok / NR, kv }'
    done
}
table | tee "$out/table.md"

set --
for name in base relu layernorm learned sinusoidal none post mha mqa; do
    test -f "$out/$name-${seeds%% *}/metrics.jsonl" && set -- "$@" --run "$name=$out/$name-${seeds%% *}/metrics.jsonl"
done
"$tfm" curve "$@" --loss validation --x tokens --title 'Held-out loss, one choice changed at a time' --out "$out/curves.svg"

if test -n "${DEAD_UNITS:-}"; then
    for seed in $seeds; do
        run=$out/relu-$seed
        # any device will do
        test -f "$run/done" && env -u TFM_BACKEND -u TFM_STRICT "$DEAD_UNITS" "$run/last.ckpt" "$run/validation.tokens" $vocab "$length" $width $layers $heads 2 384
    done | tee "$out/dead-units.txt"
fi
