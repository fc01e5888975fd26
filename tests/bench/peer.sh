#!/bin/sh
# SPDX-License-Identifier: MIT
# Ours and llama.cpp in turn on the same file, several pairs, and the median of the ratios. Says nothing about
# right or wrong. docs/benchmarks.md tells how to get the peer and how to read the output.
# peer.sh [--rows NAME,NAME...] [--pairs N] [--list]
set -u
srcdir=$(cd "${TFM_TEST_SRCDIR:-.}" && pwd) builddir=$(cd "${TFM_TEST_BUILDDIR:-.}" && pwd)
tfm=$builddir/tfm
model=${TFM_BENCH_MODEL:-$srcdir/models/SmolLM2-135M-Instruct.Q4_1.gguf}
files=${TFM_BENCH_FILES:-$builddir/tests/bench/files}
threads=${TFM_THREADS:-$(nproc)}
pairs=5 wanted=all

# What is measured: name, our file, their file, what the peer does about flash attention (on, off, or both: the
# better one counts), arguments that llama-bench and tfm bench both know.
table() {
    cat <<'ROWS'
decode-q4_1      q4_1 q4_1 off  -p 0 -n 64 -r 3
decode-q8_0      q8_0 q8_0 off  -p 0 -n 64 -r 3
decode-best      q4_0 q4_0 both -p 0 -n 64 -r 3
decode-4096      q4_1 q4_1 both -p 0 -n 32 -d 4096 -r 1
prefill-512      q4_1 q4_1 off  -p 512 -n 0 -r 2
prefill-512-q8_0 q8_0 q8_0 off  -p 512 -n 0 -r 2
prefill-512-best q4_0 q4_0 on   -p 512 -n 0 -r 2
prefill-2048     q4_0 q4_0 on   -p 2048 -n 0 -r 1
ROWS
}
other_rows='eight start memory'

fail() { echo "peer.sh: $1" >&2; exit "${2:-1}"; }
while test $# -gt 0; do
    case $1 in
        --rows) test $# -gt 1 || fail '--rows needs names' 2; wanted=,$2,; shift 2 ;;
        --pairs) test $# -gt 1 || fail '--pairs needs a number' 2; pairs=$2; shift 2 ;;
        --list) table | cut -d ' ' -f 1; printf '%s\n' $other_rows; exit 0 ;;
        *) fail "unknown argument $1: --rows NAMES, --pairs N, --list" 2 ;;
    esac
done
case $pairs in '' | *[!0-9]* | 0) fail "--pairs $pairs: not a number above 0" 2 ;; esac
if test "$wanted" != all; then
    for name in $(echo "$wanted" | tr , ' '); do
        { table | cut -d ' ' -f 1; printf '%s\n' $other_rows; } | grep -q -x -e "$name" ||
            fail "there is no row $name; --list shows them" 2
    done
fi
asked() { case $wanted in all | *",$1,"*) return 0 ;; esac; return 1; }

# ---- what is needed ----------------------------------------------------------------------------------
peer() { # NAME: path of a program of the peer
    if test -n "${TFM_PEER_LLAMA:-}"; then
        test -x "$TFM_PEER_LLAMA/$1" && echo "$TFM_PEER_LLAMA/$1"
    else
        command -v "$1"
    fi
}
bench=$(peer llama-bench) && quantize=$(peer llama-quantize) ||
    fail 'llama-bench and llama-quantize not found: put them on PATH or name their folder in TFM_PEER_LLAMA' 77
batched=$(peer llama-batched-bench) || batched=
# the plain completion program has had two names
completion=$(peer llama-completion) || completion=$(peer llama-cli) || completion=
measure=$builddir/tests/bench/measure empty=$builddir/tests/bench/empty_device
test -x "$tfm" && test -x "$measure" || fail "tfm or tests/bench/measure is not built: make bench-peer" 99
test -f "$model" || fail "no model $model: ./quickstart smollm2 fetches it, or name one in TFM_BENCH_MODEL" 77
mkdir -p "$files" || exit 99
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
TFM_BACKEND=${TFM_BACKEND:-opencl}
export TFM_BACKEND

# The file of a type, made from the model by the peer: file_of q8_0
file_of() {
    test "$1" = q4_1 && { echo "$model"; return; }
    made=$files/$1.gguf
    if ! test -f "$made" || test "$model" -nt "$made"; then
        "$quantize" --allow-requantize "$model" "$made.part" "$1" "$threads" >"$work/quantize" 2>&1 &&
            mv "$made.part" "$made" || { tail -n 3 "$work/quantize" >&2; fail "no $1 file from $model"; }
    fi
    echo "$made"
}

# ---- pairs -------------------------------------------------------------------------------------------
# A row is two functions: ours and theirs; each prints its lines and leaves the number that counts in $work/ours
# or $work/theirs (larger is better). Every second pair begins with the peer.
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) printf "%.2f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
run_pairs() { # NAME OURS THEIRS
    : >"$work/ratios"
    echo
    echo "== $1"
    pair=1
    while test $pair -le "$pairs"; do
        rm -f "$work/ours" "$work/theirs"
        if test $((pair % 2)) -eq 1; then $2 && $3; else $3 && $2; fi || fail "$1: no pair $pair"
        ratio=$(paste "$work/ours" "$work/theirs" | awk '$1 > 0 && $2 > 0 { printf "%.3f", $1 / $2 }')
        test -n "$ratio" || fail "$1: no numbers in pair $pair"
        echo "$ratio" >>"$work/ratios"
        echo "     pair $pair: ratio $ratio"
        pair=$((pair + 1))
    done
    summary=$(sort -g "$work/ratios" | awk 'NR == 1 { a = $1 } { b = $1 } END { print a " to " b }')
    echo "== $1: median ratio $(median <"$work/ratios") of $pairs pairs ($summary)"
    echo "$1 $(median <"$work/ratios") $summary" >>"$work/summary"
}
speed() { sed -n 's/.*| *\([0-9.]*\) ± .*/\1/p' "$1" | tail -n 1; }

# The two programs with the row's arguments.
bench_ours() {
    "$tfm" bench -m "$our_file" -t "$threads" $arguments >"$work/lines" 2>"$work/messages" ||
        { cat "$work/messages" >&2; return 1; }
    tail -n 1 "$work/lines" | sed 's/^/ours /'
    speed "$work/lines" >"$work/ours"
}
bench_theirs() {
    : >"$work/best"
    case $flash in both) ways='0 1' ;; on) ways=1 ;; *) ways=0 ;; esac
    for way in $ways; do
        "$bench" -m "$their_file" -t "$threads" -fa $way $arguments >"$work/lines" 2>"$work/messages" ||
            { tail -n 3 "$work/messages" >&2; return 1; }
        grep '±' "$work/lines" | sed 's/^/peer /'
        speed "$work/lines" >>"$work/best"
    done
    sort -g "$work/best" | tail -n 1 >"$work/theirs"
}

# Eight sequences that generate together.
eight_ours() { arguments='-p 0 -n 32 -d 16 -s 8 -r 3'; bench_ours; }
eight_theirs() {
    "$batched" -m "$their_file" -t "$threads" -c 2048 -npp 16 -ntg 32 -npl 8 >"$work/lines" 2>&1 ||
        { tail -n 3 "$work/lines" >&2; return 1; }
    grep '^| *16 |' "$work/lines" | sed 's/^/peer /'
    awk -F '|' '/^\| *16 \|/ { print $9 + 0 }' "$work/lines" >"$work/theirs"
}

# From start to the first token and exit: the number is its inverse.
prompt='Once upon a time'
start_ours() {
    "$measure" "$builddir/run" -m "$model" -t "$threads" -c 2048 -p "$prompt" -n 1 >"$work/lines" || return 1
    awk '{ printf "ours tfm run: %.3f s, %.1f MB\n", $1, $2 / 1e6; print 1 / $1 >ours }' ours="$work/ours" "$work/lines"
}
start_theirs() {
    "$measure" "$completion" -m "$model" -t "$threads" -c 2048 -p "$prompt" -n 1 -no-cnv --no-warmup \
        >"$work/lines" || return 1
    awk '{ printf "peer %s: %.3f s, %.1f MB\n", name, $1, $2 / 1e6; print 1 / $1 >theirs }' \
        name="${completion##*/}" theirs="$work/theirs" "$work/lines"
}

# Peak memory beside what it may be: an empty program on the device, the weights once, the cache, 64 MiB.
memory() {
    echo
    echo "== memory"
    "$tfm" plan -m "$model" -t "$threads" -c 2048 -o json >"$work/plan" 2>"$work/messages" ||
        { cat "$work/messages" >&2; return 1; }
    cache=$(sed -n 's/.*"cache_bytes": *\([0-9]*\).*/\1/p' "$work/plan")
    weights=$(wc -c <"$model")
    for i in 1 2 3; do
        nothing=$("$measure" "$empty" ${TFM_BENCH_DEVICE:+"$TFM_BENCH_DEVICE"} | cut -d ' ' -f 2) &&
            peak=$("$measure" "$tfm" run -m "$model" -t "$threads" -c 2048 -p "$prompt" -n 32 | cut -d ' ' -f 2) &&
            test -n "$nothing" && test -n "$peak" || return 1
        echo "$peak $nothing $weights $cache" | awk '{
            bound = $2 + $3 + $4 + 64 * 1048576
            printf "ours %.1f MB; bound %.1f MB = empty program %.1f + model file %.1f + cache %.1f + 67.1: %s\n", $1 / 1e6,
                bound / 1e6, $2 / 1e6, $3 / 1e6, $4 / 1e6, $1 <= bound ? "within" : "ABOVE" }'
    done
    if test -n "$completion"; then
        start_theirs
    fi
}

# ---- all of it ---------------------------------------------------------------------------------------
echo "machine   $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $threads threads"
echo "load      $(cut -d ' ' -f 1-3 /proc/loadavg)"
echo "ours      $("$tfm" --version), $(git -C "$srcdir" rev-parse --short HEAD 2>/dev/null || echo 'no commit known'), TFM_BACKEND=$TFM_BACKEND$(env | sed -n 's/^\(TFM_[A-Z]*=.*\)/ \1/p' |
    grep -v -e TFM_TEST -e TFM_BENCH -e TFM_PEER -e TFM_BACKEND | sort | tr -d '\n')"
echo "peer      $("$bench" --version 2>&1 | sed -n 's/^version: *//p' | head -n 1) ($bench)"
: >"$work/summary"
# a warm kernel cache for what follows
"$tfm" run -m "$model" -t "$threads" -p "$prompt" -n 1 >/dev/null 2>"$work/messages" ||
    { cat "$work/messages" >&2; exit 1; }

table >"$work/table"
while read -r name ours theirs flash arguments; do
    asked "$name" || continue
    our_file=$(file_of "$ours") && their_file=$(file_of "$theirs") || exit 1
    run_pairs "$name" bench_ours bench_theirs
done <"$work/table"
our_file=$model their_file=$model
if asked eight; then
    if test -n "$batched"; then run_pairs eight eight_ours eight_theirs; else echo 'eight: no llama-batched-bench'; fi
fi
if asked start; then
    if test -n "$completion"; then run_pairs start start_ours start_theirs; else echo 'start: no llama-completion'; fi
fi
if asked memory; then
    if test -x "$empty"; then memory || fail 'memory'; else echo 'memory: empty_device is not built (no OpenCL)'; fi
fi
echo
awk '{ printf "%-17s %s (%s to %s)\n", $1, $2, $3, $5 }' "$work/summary"
