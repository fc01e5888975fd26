#!/bin/sh
# SPDX-License-Identifier: MIT
# What is said about how a model will run: `tfm plan` about runs of few rows, `run -v` and `tfm doctor` about GEMM.
# Catches phases that are lost without a word, a choice whose reason is another one's.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
"$tfm" backends >"$out" 2>"$err"
grep -q 'Portable Computing Language' "$out" || { echo 'no PoCL device'; exit 77; }
TFM_BACKEND='opencl:Portable Computing Language' TFM_THREADS=2
export TFM_BACKEND TFM_THREADS
toy toy.gguf

call plan -m toy.gguf
# 13 as of now; a block: norm + q k v, attention, merge + output, norm + gate, down; before them the embedding, behind them rows and head
test $code -eq 0 && grep -A 1 '^segment 0: opencl' "$out" |
    grep -q -E '^  runs of up to [0-9]+ rows: 1[0-9] phases instead of [0-9]+ launches$'
verdict $? 'plan: how many phases'
call plan -m toy.gguf -o json
test "$(json 'segments.0.notes.#')" -eq 1 && json segments.0.notes.0 | grep -q 'runs of up to [0-9]* rows: 1[0-9] phases'
verdict $? 'plan -o json: the same'
call_with TFM_OPENCL_SHAPE=group plan -m toy.gguf
grep -q '^  runs of few rows: launches, no phases: only CPUs with vectors in the wide shape have them$' "$out"
verdict $? 'plan: no phases, and why'
call_with TFM_BACKEND=reference plan -m toy.gguf -o json
test $code -eq 0 && test "$(json 'segments.0.notes.#')" -eq 0
verdict $? 'plan: a backend that has nothing to say'

while IFS='|' read -r setting text; do
    call_with "$setting" logits -m toy.gguf --ids 1,2,3 -v
    test $code -eq 0 && test "$(grep -c "GEMM of many rows: $text" "$err")" -eq 1
    verdict $? "-v: GEMM with $setting"
    call_with "$setting" doctor
    test "$(grep -c "GEMM of many rows: $text" "$out")" -eq 1
    verdict $? "doctor: GEMM with $setting"
done <<END
TFM_OPENCL_GEMM=auto|our own kernel, because the device is a CPU
TFM_OPENCL_GEMM=clblast|CLBlast, because TFM_OPENCL_GEMM says so
TFM_OPENCL_GEMM=own|our own kernel, because TFM_OPENCL_GEMM says so
END
finish
