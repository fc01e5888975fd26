#!/bin/sh
# SPDX-License-Identifier: MIT
# The tables of docs/ops.md are what supports() of each backend says now. Catches an op, dtype or kernel that
# came or went without its line.
# test_ops_table.sh [--write]   --write (`make ops-table`) puts the tables of today into the file instead
set -u
root=${TFM_TEST_SRCDIR:-.}
build=${TFM_TEST_BUILDDIR:-.}
file=$root/docs/ops.md
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
write=
test "${1-}" = --write && write=1

# What stands between the markers of a backend.
in_file() { # BACKEND
    awk -v begin="<!-- supports: $1 -->" -v end="<!-- end: $1 -->" '
        $0 == end { inside = 0 }
        inside { print }
        $0 == begin { inside = 1 }' "$file"
}

put() { # BACKEND TABLE
    awk -v begin="<!-- supports: $1 -->" -v end="<!-- end: $1 -->" -v table="$2" '
        $0 == end { inside = 0 }
        !inside { print }
        $0 == begin { inside = 1; while ((getline line < table) > 0) print line }' "$file" >"$work/new" &&
        cat "$work/new" >"$file"
}

number=0
for backend in reference opencl blas; do
    number=$((number + 1))
    "$build/tests/build/ops_table" $backend >"$work/now" 2>"$work/why"
    status=$?
    if test $status -eq 77; then
        echo "ok $number - $backend # SKIP $(cat "$work/why")"
        continue
    fi
    in_file $backend >"$work/then"
    if test $status -ne 0; then
        sed 's/^/# /' "$work/why"
        echo "not ok $number - $backend: its table cannot be made"
    elif test -n "$write"; then
        put $backend "$work/now" && echo "ok $number - $backend: written"
    elif test -s "$work/then" && diff "$work/then" "$work/now" >"$work/diff"; then
        echo "ok $number - $backend: its table in docs/ops.md is current"
    else
        sed 's/^/# /' "$work/diff"
        echo "not ok $number - $backend: its table in docs/ops.md is not current: make ops-table"
    fi
done
echo "1..$number"
