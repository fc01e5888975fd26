#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs one test for the TAP driver, with no standard input and a time limit. Exit code 77 becomes a
# skip of the whole program, with the last line that it printed as the reason; a test that prints no
# TAP becomes one test case that passed or failed by its exit code.
# tap.sh PROGRAM [ARGUMENT...]
limit=${TFM_TEST_TIMEOUT:-600}
work=$(mktemp -d "${TMPDIR:-/tmp}/tfm-tap.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM

timeout -k 10 "$limit" "$@" </dev/null >"$work/out" 2>"$work/err"
status=$?
cat "$work/err" >&2

# The last argument that is a file is the test itself; the first may be a shell.
for argument; do
    test -f "$argument" && name=${argument##*/}
done

if test $status -eq 77; then
    reason=$(sed -n -e 's/^1\.\.0 *# *SKIP *//p' "$work/out")
    test -n "$reason" || reason=$(cat "$work/out" "$work/err" | tail -n 1)
    echo "1..0 # SKIP $reason"
    exit 0
fi
test $status -eq 124 && echo "# $name: stopped after $limit seconds"
if grep -q '^1\.\.[0-9]' "$work/out"; then
    cat "$work/out"
    # Check exits 1 when a case failed; the driver has already seen that case.
    test $status -eq 1 && grep -q '^not ok' "$work/out" && exit 0
    exit $status
fi
sed 's/^/# /' "$work/out"
echo "1..1"
if grep -q -E '(^|[^a-z])(not )?ok [0-9]+ - ' "$work/out"; then
    echo "not ok 1 - $name (it has cases and no plan: it ended early, or a line was cut)"
elif test $status -eq 0; then
    echo "ok 1 - $name"
else
    echo "not ok 1 - $name (exit code $status)"
fi
