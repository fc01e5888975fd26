#!/bin/sh
# SPDX-License-Identifier: MIT
# Little stack, and no place for PoCL's cache (cases A38, A40). PoCL keeps the private arrays of all work-items of a
# group on the stack of one thread when there are barriers; it gives up its devices when its cache cannot be made.
# Catches private arrays that grow with the group, a crash or an answer from nowhere where one line was due.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
subject='opencl:Portable Computing Language'
"$tfm" backends 2>/dev/null | grep -q 'Portable Computing Language' || { echo 'no PoCL device'; exit 77; }
toy toy.gguf

# 1 MiB of stack, for the main thread and those that PoCL makes
little() { (ulimit -S -s 1024 && exec "$tfm" "$@") >"$out" 2>"$err" </dev/null; code=$?; }
for shape in group wide; do
    TFM_OPENCL_SHAPE=$shape
    export TFM_OPENCL_SHAPE
    for op in gqa_attention linear rms_norm; do
        little check-backend "$subject" --op $op --nodes 3 --no-times
        test $code -eq 0 && grep -q ' 0 failed' "$out"
        verdict $? "1 MiB of stack, $shape: $op"
    done
    ids=1$(seq 2 200 | sed 's/^/,/' | tr -d '\n')
    call logits -m toy.gguf --backend "$subject" --ids "$ids"
    cp "$out" "$work/want"
    little logits -m toy.gguf --backend "$subject" --ids "$ids"
    test $code -eq 0 && cmp -s "$out" "$work/want"
    verdict $? "1 MiB of stack, $shape: the same logits"
done
unset TFM_OPENCL_SHAPE

# a cache that is named and cannot be made, even by root; one on a full disk is the same to PoCL
TMPDIR=$work/tmp
export TMPDIR
mkdir "$TMPDIR"
for folder in /proc/none /dev/null/none; do
    call_with "POCL_CACHE_DIR=$folder" logits -m toy.gguf --ids 1,2,3 --backend "$subject"
    test $code -eq 0 && test "$(lines "$out")" -eq 10 && test "$(lines "$err")" -eq 1 &&
        grep -q 'POCL_CACHE_DIR cannot be written, so kernels are built anew' "$err" && test -z "$(ls "$TMPDIR")"
    verdict $? "POCL_CACHE_DIR=$folder: runs, says so in one line, leaves nothing behind"
    call_with "POCL_CACHE_DIR=$folder" logits -m toy.gguf --ids 1,2,3 --backend reference
    test $code -eq 0 && test ! -s "$err"
    verdict $? "POCL_CACHE_DIR=$folder: the reference does not care"
done
finish
