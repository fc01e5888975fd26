#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs one test for the TAP driver: exit code 77 becomes a skip of the whole program, and a test that
# prints no TAP becomes one test case that passed or failed by its exit code.
# tap.sh PROGRAM [ARGUMENT...]
out=$(mktemp "${TMPDIR:-/tmp}/tfm-tap.XXXXXX") || exit 99
trap 'rm -f "$out"' EXIT
trap 'exit 99' HUP INT TERM

"$@" >"$out"
status=$?

# The last argument that exists as a file is the test itself (the first may be a shell).
for argument; do
    test -f "$argument" && name=${argument##*/}
done

if test $status -eq 77; then
    reason=$(sed -n -e 's/^1\.\.0 *# *SKIP *//p' "$out")
    grep -v '^1\.\.[0-9]' "$out" | sed 's/^/# /'
    echo "1..0 # SKIP ${reason:-$(tail -n 1 "$out")}"
    exit 0
fi
if grep -q '^1\.\.[0-9]' "$out"; then
    cat "$out"
    # Check exits 1 when a case failed; the driver has already seen that case.
    test $status -eq 1 && grep -q '^not ok' "$out" && exit 0
    exit $status
fi
sed 's/^/# /' "$out"
echo "1..1"
if test $status -eq 0; then
    echo "ok 1 - $name"
else
    echo "not ok 1 - $name (exit code $status)"
fi
