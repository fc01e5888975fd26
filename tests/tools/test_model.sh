#!/bin/sh
# SPDX-License-Identifier: MIT
# The program with the real model: the text that the golden file promises, on each backend of this build.
# Catches a program that reads, feeds or prints something else than what the libraries are tested with.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
model=${TFM_TEST_MODEL:-$srcdir/models/SmolLM2-135M-Instruct.Q4_1.gguf}
test -f "$model" || { echo "1..0 # SKIP no $model: ./quickstart smollm2 fetches it"; exit 77; }
TFM_MODEL=$model TFM_THREADS=
export TFM_MODEL TFM_THREADS
unset TFM_THREADS

call tokenize -p 'Once upon a time'
test "$(cat "$out")" = '6403 1980 253 655'
verdict $? 'tokenize'
backends=reference
test -f "$builddir/backends/opencl/.libs/opencl.so" && backends='reference opencl'
for backend in $backends; do
    strict=$(test $backend = reference || echo 1)
    TFM_BACKEND=$backend TFM_STRICT=$strict
    export TFM_BACKEND TFM_STRICT
    call run -p 'Once upon a time' -n 8
    test $code -eq 0 && test "$(cat "$out")" = 'Once upon a time, the city of Nova Haven was a' &&
        grep -q "| $backend: .* | fallback 0.0% (0 of 454 nodes) |" "$err"
    verdict $? "$backend: run"
    call logits -p 'Once upon a time' --kv f32 --top 2
    awk -F '\t' 'NR == 1 { d = $3 - 18.142017; ok = $1 == 28 && $2 == "\",\"" && d * d < 1e-6 }
        NR == 2 { d = $3 - 14.082531; ok = ok && $1 == 281 && $2 == "\" in\"" && d * d < 1e-6 }
        END { exit !(ok && NR == 2) }' "$out"
    verdict $? "$backend: logits"
done
finish
