#!/bin/sh
# SPDX-License-Identifier: MIT
# The blas backend in the program: TFM_BACKEND=blas runs models with float and with quantized weights, and
# what falls back is counted. Catches a node that goes elsewhere, a fallback that is not told, another text
# than the reference's, a build tree that does not find its module.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
unset TFM_PLUGIN_PATH
toy float.gguf
toy quantized.gguf quantized

call backends
test $code -eq 0 && grep -q "^blas .* usable .*$builddir/backends/blas/.libs/blas.so" "$out"
verdict $? 'the build tree finds its own blas backend'
grep -q '^blas .* usable' "$out" || { echo "1..0 # SKIP $(grep -A 1 '^blas' "$out" | tail -n 1)"; exit 77; }

# nodes BACKEND: how many nodes of the plan in $out it has, and how many of those are linear
nodes() {
    n=$(json nodes.#) i=0 count=0 linear=0
    while test $i -lt "$n"; do
        if test "$(json nodes.$i.backend)" = "$1"; then
            count=$((count + 1))
            test "$(json nodes.$i.op)" != linear || linear=$((linear + 1))
        fi
        i=$((i + 1))
    done
}
call plan -o json --backend blas -m float.gguf
nodes reference
test $code -eq 0 && test $count -gt 0 && test $linear -eq 0
verdict $? 'float weights: no linear node falls back'
nodes blas
test $linear -gt 0 && test $count -eq $linear && test "$(json fallbacks)" -eq $((n - count))
verdict $? "float weights: blas has the $linear linear nodes and no other; the rest is counted"

call run --backend reference -m float.gguf -n 12
cp "$out" "$work/right"
TFM_BACKEND=blas
export TFM_BACKEND
call run -m float.gguf -n 12
test $code -eq 0 && cmp -s "$out" "$work/right" && grep -q '| blas: ' "$err"
verdict $? 'float weights: the text of the reference'

call plan -o json -m quantized.gguf
nodes blas
test $code -eq 0 && test $count -eq 0 && test "$(json fallbacks)" -eq "$n"
verdict $? "quantized weights: all $n nodes fall back"
call run -m quantized.gguf -n 4
test $code -eq 0 && grep -q '| fallback 100.0% ' "$err"
verdict $? 'quantized weights: it runs, and says so'
TFM_STRICT=1
export TFM_STRICT
call run -m quantized.gguf -n 4
failed_with 1 'blas: only linear'
verdict $? 'TFM_STRICT=1: the first refusal with its reason'
finish
