#!/bin/sh
# SPDX-License-Identifier: MIT
# The program that the README shows is the one in docs/examples, and it gives the right numbers on each
# backend: h = up x, y = down (h / sqrt(mean(h^2) + 1e-5) * gain), worked out by hand.
set -u
source=${TFM_TEST_SRCDIR:-.} build=${TFM_TEST_BUILDDIR:-.}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
program=$build/docs/examples/three_layers
right='3.6148 3.0984  2.5560 4.0166'

echo '1..3'
sed -n '/^```c$/,/^```$/p' "$source/README.md" | sed '/^```/d' >"$work/shown"
if diff "$source/docs/examples/three_layers.c" "$work/shown" >"$work/diff"; then
    echo 'ok 1 - README.md shows docs/examples/three_layers.c'
else
    sed 's/^/# /' "$work/diff"
    echo 'not ok 1 - README.md shows docs/examples/three_layers.c'
fi

run() { # NUMBER BACKEND
    "$program" "$2" >"$work/out" 2>"$work/err"
    status=$?
    if test $status -eq 0 && test "$(cat "$work/out")" = "$(printf '%-10s %s' "$2" "$right")"; then
        echo "ok $1 - three layers on $2"
    else
        sed 's/^/# /' "$work/out" "$work/err"
        echo "not ok $1 - three layers on $2 (exit code $status)"
    fi
}
run 2 reference
if test -f "$build/backends/opencl/opencl.la"; then
    run 3 opencl
else
    echo 'ok 3 - three layers on opencl # SKIP built without OpenCL'
fi
