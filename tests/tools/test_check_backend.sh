#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm check-backend: finds each fault of the wrong backends of tests/plugins (wrong.h) and names it, and finds
# none where there is none. Catches a check that looks away, that blames what is right, that counts what it
# has not run, or that dies with the backend.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
modules=$builddir/tests/plugins/.libs
test -f "$modules/wrong_nothing.so" || { echo '1..0 # SKIP the test modules are not built (--disable-shared)'; exit 77; }
TFM_PLUGIN_PATH=
export TFM_PLUGIN_PATH

# The plan at the end and the lines before it agree, and the sum says so too.
counts() {
    n=$(grep -c -E '^(not )?ok ' "$out")
    bad=$(grep -c '^not ok ' "$out")
    grep -q "^1\.\.$n\$" "$out" && grep -q "^# .* cases .*: $((n - bad)) passed, $bad failed\$" "$out"
}

call check-backend "$modules/wrong_nothing.so"
test $code -eq 0 && test ! -s "$err" && counts && test "$bad" -eq 0 && test "$n" -gt 200
verdict $? "a right backend passes: $n cases"
grep -q '^# linear: refuses [0-9]* of [0-9]* nodes: not add, linear or' "$out"
verdict $? 'what it refuses is told, with its reason'
grep -q "^# failing allocations: the host's alloc .* was not made to fail\$" "$out"
verdict $? 'the output says which allocations were made to fail'
grep -q '^# gqa_attention  .*  [0-9]*  *[0-9.]*  *[0-9.]*$' "$out" && grep -q 'GB/s  *GFLOP/s$' "$out"
verdict $? 'a table of times'
call check-backend "$modules/wrong_ragged.so"
grep -q '^# no times: what is wrong has no speed' "$out" && ! grep -q 'GFLOP/s' "$out"
verdict $? 'no times of what is wrong'

call check-backend "$modules/wrong_nothing.so" --nodes 2 --one-thread --no-times
m=$(grep -c -E '^(not )?ok ' "$out")
test $code -eq 0 && test "$m" -lt "$n" && grep -q -E '^# add: 2 of the [0-9]+ nodes that it takes were run$' "$out" &&
    test "$(grep -c -E '^ok [0-9]+ - (add|linear|gqa_attention) .*: two threads # SKIP one thread' "$out")" -eq 3 &&
    grep -q '0 failed, 3 skipped$' "$out" && ! grep -q 'GFLOP/s' "$out" &&
    for op in add linear gqa_attention; do grep -q "^ok [0-9]* - $op .*: 1 row" "$out" || exit 1; done
verdict $? 'fewer nodes of every op, skipped cases told, no times'

call check-backend "$modules/wrong_nothing.so" --op add --nodes 1 --rows 7 --no-times
test $code -eq 0 && grep -q '^# add: [1-9][0-9]* cases of more than 7 rows were left out$' "$out" &&
    grep -q '^ok .*: 7 rows' "$out" && grep -q '^ok .*: two threads' "$out" && ! grep -q -E '^ok .*: (65|33|31) rows' "$out"
verdict $? 'no cases of many rows, and how many are left out'

# wrong FAULT OPS TEXT: a failed case holds TEXT; those that fail are of OPS only
wrong() {
    call check-backend "$modules/wrong_$1.so"
    test $code -eq 1 && counts && test "$bad" -gt 0 && tail -n 1 "$err" | grep -q ' cases failed$' &&
        grep -q -E "^not ok [0-9]+ - $3" "$out" &&
        ! grep '^not ok ' "$out" | grep -v -q -E "^not ok [0-9]+ - ($2)[: ]"
    verdict $? "wrong_$1: $bad cases fail: $3"
}
# under a sanitizer a crash is a report and exit code 1
crashed='(crashed: signal 11|the process ended with exit code 1)'
heads='gqa_attention f32, cache f32, 9/3 heads of 64:'
wrong head_map gqa_attention "$heads a head reads its own group: output: value 64 of row 0 is 2 instead of 1"
wrong mask gqa_attention "$heads a row sees the cells up to its own: output: value 0 of row 0 is 1 instead of 1.5"
wrong cell gqa_attention "$heads 1 row after 63 cells: .* they are NaN"
wrong beta linear "linear f32 weight \[3, 1\]: 1 row: .* they are NaN: read from an output's old content"
wrong offset add 'add f32 \[N\]: 65 rows: .* near 12345, .*: an offset was ignored'
wrong dtype add 'add f16 \[N, 33\]: 65 rows: output: value [0-9]+ of row [0-9]+ is .* instead of '
wrong leak 'add|linear|gqa_attention|close' "linear .*: gives back what it took: [0-9]+ blocks of the host's alloc"
grep -q '^not ok .* close gives everything back: [0-9]* blocks' "$out"
verdict $? '... and close tells of all of them'
wrong past_end add "add f32 \[N\]: 65 rows: .* changed memory .* of 'output', [0-9]+ past its end"
wrong ragged linear 'linear f32 weight \[7, 31\]: 65 rows: output: value 0 of row 0 is .* instead of'
wrong input add "add f32 \[N\]: 65 rows: .* changed memory that is not its output: .* of 'b'"
wrong nan_lost add 'add f32 \[N\]: NaN and infinities in one row: output: value 0 of row 1 is 0 instead of -?nan'
wrong threads linear 'linear .*: two threads: thread [01]: output: value'
wrong no_memory 'add|linear|gqa_attention' "add .*: allocations fail: $crashed"
wrong exit 'add|linear' 'linear .*: 31 rows: the process ended with exit code 3'
wrong crash linear "linear f32 weight \[3, 1\]: 65 rows: $crashed"
grep -q '^# it crashed too often: the rest was left out' "$out"
verdict $? 'wrong_crash: says that it gave up'
wrong probe load "load and probe .*wrong_probe.so: $crashed"
test "$n" -eq 1
verdict $? 'wrong_probe: nothing else is claimed'
wrong major load 'load and probe .*wrong_major.so: built for backend ABI 7, this library has 1'

call check-backend --op add "$modules/wrong_head_map.so"
test $code -eq 0 && counts && grep -q '^ok .* - add f32' "$out" && ! grep -q ' - linear' "$out"
verdict $? '--op: only that op'
call check-backend --json --op add "$modules/wrong_past_end.so"
test $code -eq 1 && test "$(json backend.name)" = wrong_past_end && test "$(json failed)" -gt 0 &&
    test $(($(json passed) + $(json failed))) -eq "$(json 'cases.#')" &&
    test $(($(json node_cases) + $(json device_cases))) -eq "$(json 'cases.#')" &&
    test "$(json 'performance.#')" -eq 0 &&
    test "$(json refused.0.op)" = add && test "$(json cases.0.passed)" = true
verdict $? '--json'
call check-backend --json --op add "$modules/wrong_nothing.so"
test $code -eq 0 && test "$(json performance.0.op)" = add && json performance.0.gb_s >/dev/null &&
    json performance.0.gflop_s >/dev/null && test "$(json performance.0.rows)" -gt 1
verdict $? '--json: times'
call check-backend --op rope "$modules/wrong_nothing.so"
test $code -eq 1 && grep -q 'no node was run' "$err"
verdict $? 'no case of a node is a failure'
call check-backend "$modules/nowhere.so"
test $code -eq 1 && grep -q '^not ok 1 - load and probe .*nowhere.so: ' "$out"
verdict $? 'a file that is not there'
call check-backend referense
failed_with 1 'did you mean "reference"'
verdict $? 'a name that is not there'
call check-backend reference:7
test $code -eq 1 && test "$(lines "$err")" -eq 1 && grep -q "no device '7'" "$err"
verdict $? 'a device that is not there'
call check-backend --op relinear reference
failed_with 2 "no op 'relinear'"
verdict $? 'an op that is not there'
call check-backend
failed_with 2 'NAME|FILE.so is missing'
verdict $? 'no name at all'

example=$builddir/docs/examples/backend/.libs/example.so
call check-backend "$example"
test $code -eq 0 && counts && test "$bad" -eq 0 && grep -q '^ok .* - rms_norm f32' "$out"
verdict $? "docs/examples/backend passes: $n cases"
for name in blas opencl; do
    test -f "$builddir/backends/$name/.libs/$name.so" || continue
    device=
    test $name != opencl || device=:Portable
    if "$tfm" backends 2>/dev/null | grep -q "^$name .* unusable "; then
        case_number=$((case_number + 1))
        echo "ok $case_number - $name passes # SKIP it cannot be used here"
        continue
    fi
    call check-backend $name$device
    least=200
    test $name != opencl || least=1000
    counts && test $code -eq 0 && test "$bad" -eq 0 && test "$n" -ge $least
    verdict $? "$name passes: $n cases"
done
finish
