#!/bin/sh
# SPDX-License-Identifier: MIT
# Full training steps of ours and of PyTorch in turn, several pairs, and the median of the ratios; then one AdamW pass
# beside what memory gives. Says nothing about right or wrong. docs/benchmarks.md tells how to read the output.
# train.sh [--rows NAME,NAME...] [--pairs N] [--list]
set -u
srcdir=$(cd "${TFM_TEST_SRCDIR:-.}" && pwd) builddir=$(cd "${TFM_TEST_BUILDDIR:-.}" && pwd)
tfm=$builddir/tfm
model=${TFM_BENCH_MODEL:-$srcdir/models/SmolLM2-135M-Instruct.Q4_1.gguf} # its tokenizer
threads=${TFM_THREADS:-$(nproc)}
pairs=3 wanted=all

# What is measured: name, compute, steps a pair, width, layers, heads, kv_heads, ffn_width, vocab, tokens of a window,
# windows
table() {
    cat <<'ROWS'
train-135m     bf16 4  576 30 9 3 1536 49152 64  4
train-135m-f32 f32  4  576 30 9 3 1536 49152 64  4
train-5m       bf16 12 256 6  8 4 704  4096  256 8
train-5m-f32   f32  12 256 6  8 4 704  4096  256 8
ROWS
}

fail() { echo "train.sh: $1" >&2; exit "${2:-1}"; }
while test $# -gt 0; do
    case $1 in
        --rows) test $# -gt 1 || fail '--rows needs names' 2; wanted=,$2,; shift 2 ;;
        --pairs) test $# -gt 1 || fail '--pairs needs a number' 2; pairs=$2; shift 2 ;;
        --list) table | cut -d ' ' -f 1; echo adamw; exit 0 ;;
        *) fail "unknown argument $1: --rows NAMES, --pairs N, --list" 2 ;;
    esac
done
case $pairs in '' | *[!0-9]* | 0) fail "--pairs $pairs: not a number above 0" 2 ;; esac
if test "$wanted" != all; then
    for name in $(echo "$wanted" | tr , ' '); do
        { table | cut -d ' ' -f 1; echo adamw; } | grep -q -x -e "$name" ||
            fail "there is no row $name; --list shows them" 2
    done
fi
asked() { case $wanted in all | *",$1,"*) return 0 ;; esac; return 1; }

python=${TFM_PEER_PYTHON:-}
for p in $python /usr/bin/python3 python3; do
    "$p" -c 'import torch' 2>/dev/null && { python=$p; break; }
done
test -n "$python" && "$python" -c 'import torch' 2>/dev/null ||
    fail 'no python3 with torch (Debian package: python3-torch), or name one in TFM_PEER_PYTHON' 77
test -x "$tfm" || fail 'tfm is not built' 99
test -f "$model" || fail "no model $model: ./quickstart smollm2 fetches it, or name one in TFM_BENCH_MODEL" 77
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
TFM_BACKEND=${TFM_BACKEND:-opencl}
export TFM_BACKEND

# English enough: our own documents and headers.
cat "$srcdir"/docs/*.md "$srcdir"/README.md "$srcdir"/COPYING "$srcdir"/lib/include/tfm/*.h >"$work/text.txt" || exit 99

write_config() { # FILE, then a row of the table without its name, word by word
    cat >"$1" <<JSON
{"vocab": $9, "context": ${10}, "width": $4, "layers": $5, "heads": $6, "kv_heads": $7, "ffn_width": $8, "eps": 1e-5,
 "tied": true, "train": {"length": ${10}, "sequences": ${11}, "steps": 1000, "rate": 1e-4, "final_rate": 1e-5,
 "warmup": 10, "held_out": 0, "compute": "$2"}}
JSON
}

median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) printf "%.2f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
# The median of all steps but the first, in which memory is touched for the first time.
settled() { tail -n +2 | median; }

ours() { # STEPS
    rm -rf "$work/out"
    "$tfm" train --data "$work/text.txt" --tokenizer "$tokenizer" --config "$work/config.json" -t "$threads" \
        --out "$work/out" --steps "$1" >"$work/lines" 2>"$work/messages" || { tail -n 3 "$work/messages" >&2; return 1; }
    sed -n 's/.*"tok_s": *\([0-9.]*\).*/\1/p' "$work/out/metrics.jsonl" | settled >"$work/ours"
}
theirs() { # STEPS
    "$python" "$srcdir/tests/bench/train_peer.py" "$work/config.json" "$1" "$threads" >"$work/lines" || return 1
    peer=$(sed -n 's/^# //p' "$work/lines")
    grep -v '^#' "$work/lines" | settled >"$work/theirs"
}

run_pairs() { # NAME STEPS
    : >"$work/ratios"
    echo
    echo "== $1"
    pair=1
    while test $pair -le "$pairs"; do
        if test $((pair % 2)) -eq 1; then ours "$2" && theirs "$2"; else theirs "$2" && ours "$2"; fi ||
            fail "$1: no pair $pair"
        ratio=$(paste "$work/ours" "$work/theirs" | awk '$1 > 0 && $2 > 0 { printf "%.3f", $1 / $2 }')
        test -n "$ratio" || fail "$1: no numbers in pair $pair"
        echo "$ratio" >>"$work/ratios"
        echo "     pair $pair: ours $(cat "$work/ours") tok/s, $peer: $(cat "$work/theirs"), ratio $ratio"
        pair=$((pair + 1))
    done
    echo "== $1: median ratio $(median <"$work/ratios") of $pairs pairs"
}

echo "machine   $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $threads threads"
echo "load      $(cut -d ' ' -f 1-3 /proc/loadavg)"
echo "ours      $("$tfm" --version), $(git -C "$srcdir" rev-parse --short HEAD 2>/dev/null || echo 'no commit known'), TFM_BACKEND=$TFM_BACKEND${TFM_ACT:+ TFM_ACT=$TFM_ACT}"
table >"$work/table"
while read -r name compute steps rest; do
    asked "$name" || continue
    write_config "$work/config.json" "$compute" "$steps" $rest
    case $name in
        train-135m*) tokenizer=$model ;;
        *) tokenizer=$work/tokenizer.gguf
            test -f "$tokenizer" || "$tfm" train-tokenizer --data "$work/text.txt" --vocab 4096 -o "$tokenizer" \
                >"$work/messages" 2>&1 || { tail -n 3 "$work/messages" >&2; fail 'no tokenizer of 4096 tokens'; } ;;
    esac
    run_pairs "$name" "$steps" </dev/null
done <"$work/table"
if asked adamw; then
    echo
    echo '== adamw'
    "$tfm" bench-ops --op adamw -t "$threads" || fail 'adamw'
fi
