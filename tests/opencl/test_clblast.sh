#!/bin/sh
# SPDX-License-Identifier: MIT
# CLBlast stays a living path: the golden logits and every case of check-backend with
# TFM_OPENCL_GEMM=clblast, and its SGEMM really runs. And the setting: what -v says, what a bad word gets.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
"$tfm" backends >"$out" 2>"$err"
grep -q '^opencl' "$out" || { echo 'the opencl backend is not there'; exit 77; }
TFM_THREADS=2
pocl='opencl:Portable Computing Language'

# The last count that a closed device told is not 0.
sgemm() { grep -E 'so far [1-9][0-9]* SGEMM calls of CLBlast' "$1" >/dev/null; }

env TFM_OPENCL_GEMM=clblast "$tfm" check-backend opencl >"$out" 2>"$err" </dev/null
code=$?
test $code -eq 0 && ! grep -q '^not ok' "$out"
verdict $? "check-backend: $(grep -c '^ok' "$out") cases"

toy "$work/toy.gguf"
ids=1$(seq 2 64 | sed 's/^/,/' | tr -d '\n')
call_with TFM_OPENCL_GEMM=clblast logits -m "$work/toy.gguf" --backend "$pocl" --ids "$ids" -v
test $code -eq 0 && sgemm "$err" &&
    grep -q 'GEMM of many rows: CLBlast, because TFM_OPENCL_GEMM says so' "$err"
verdict $? 'clblast: SGEMM runs, and -v says why'
call logits -m "$work/toy.gguf" --backend "$pocl" --ids "$ids" -v
test $code -eq 0 && ! sgemm "$err" &&
    grep -q 'GEMM of many rows: our own kernel, because the device is a CPU' "$err"
verdict $? 'auto on a CPU: our own kernel, and -v says why'
for backend in "$pocl" auto; do
    call_with TFM_OPENCL_GEMM=best logits -m "$work/toy.gguf" --backend "$backend" --ids 1
    failed_with 1 "TFM_OPENCL_GEMM is 'best'; it must be one of: auto, own, clblast"
    verdict $? "a bad word, --backend ${backend%%:*}: an error that lists the choices"
done

if test -r "${TFM_TEST_MODEL:-/nonexistent}"; then
    env TFM_OPENCL_GEMM=clblast TFM_VERBOSE=1 "$builddir/tests/opencl/test_golden" >"$out" 2>"$err"
    code=$?
    test $code -eq 0 && sgemm "$err"
    verdict $? 'golden logits, with SGEMM calls'
fi
finish
