#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm bench-ops on the reference: the form of what it prints, and numbers that agree with each other. Catches
# output that scripts cannot read, bytes or shares that do not follow from the time, an op that is not measured.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
TFM_BACKEND=reference
export TFM_BACKEND
number='[0-9][0-9.]*'
# A time may be lost in the noise of a busy machine: then the line says so and the test tries again.
measured() { # ARGUMENT...
    for try in 1 2 3 4 5; do
        call bench-ops "$@"
        grep -q 'lost in the noise' "$out" || return 0
    done
}

measured --op scale -r 3
test $code -eq 0 && test ! -s "$err" &&
    grep -q -E "^Limits of this machine, 1 threads: $number GB/s read .*, $number GFLOP/s f32 multiply-add \(.+\)\.\$" "$out" &&
    grep -q -x -E "\| scale \| f32 \| f32 \| \[512, 1536\] \| reference \| $number \| $number \| $number% \| $number \| $number% \|" "$out" &&
    test "$(grep -c '^|' "$out")" -eq 3
verdict $? 'a table with the limits above it'

measured --op mul -r 3 -o json -t 2
test $code -eq 0 && test "$(json 'ops.#')" -eq 1 && test "$(json ops.0.op)" = mul &&
    test "$(json ops.0.backend)" = reference && test "$(json ops.0.shape)" = '[512, 1536]' &&
    test "$(json ops.0.rows)" -eq 512 && test "$(json limits.threads)" -eq 2 &&
    json limits.fma_kind >/dev/null && test "$(json limits.read_bytes)" -ge 268435456
verdict $? '-o json'
# three tensors of 512 x 1536 f32, one multiplication an element
echo "$(json ops.0.ns) $(json ops.0.gb_s) $(json ops.0.gflop_s) $(json ops.0.of_read) $(json ops.0.of_fma) \
    $(json limits.read_gb_s) $(json limits.fma_gflop_s)" |
    awk 'function near(a, b) { return a > 0 && a < b * 1.001 && a > b * 0.999 }
        { exit !(near($2 * $1, 3 * 4 * 512 * 1536) && near($3 * $1, 512 * 1536) && near($4, $2 / $6) &&
            near($5, $3 / $7)) }'
verdict $? 'bytes, operations and shares follow from the time'

# Every op that the library knows is measured, each line of the list is of one that it knows.
sed -n 's/^TFM_BENCH(\([A-Z0-9_]*\),.*/\1/p' "$srcdir/lib/tools/bench_cases.def" | sort -u >"$work/listed"
sed -n 's/^TFM_OP([0-9]*, \([A-Z0-9_]*\),.*/\1/p' "$srcdir/lib/include/tfm/ops.def" | sort -u >"$work/known"
test -s "$work/known" && diff "$work/known" "$work/listed" >"$out"
verdict $? 'each op has a line in bench_cases.def'

call bench-ops --op nothing
failed_with 2 nothing
verdict $? '--op: no such op'
call bench-ops --backend nowhere --op scale
failed_with 1 nowhere
verdict $? '--backend: no such backend'
call bench-ops -o xml
failed_with 2 xml
verdict $? '-o: no such form'
finish
