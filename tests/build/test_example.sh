#!/bin/sh
# SPDX-License-Identifier: MIT
# The program that the README shows is the one in docs/examples, and it gives the right numbers on each
# backend; so does the one that brings its own OpenCL, and adds 10 with a kernel of its own: h = up x, y = down (h / sqrt(mean(h^2) + 1e-5) * gain), worked out by hand.
set -u
source=${TFM_TEST_SRCDIR:-.} build=${TFM_TEST_BUILDDIR:-.}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
program=$build/docs/examples/three_layers
right='3.6148 3.0984  2.5560 4.0166' right_and_10='13.6148 13.0984  12.5560 14.0166'

echo '1..4'
sed -n '/^```c$/,/^```$/p' "$source/README.md" | sed '/^```/d' >"$work/shown"
if diff "$source/docs/examples/three_layers.c" "$work/shown" >"$work/diff"; then
    echo 'ok 1 - README.md shows docs/examples/three_layers.c'
else
    sed 's/^/# /' "$work/diff"
    echo 'not ok 1 - README.md shows docs/examples/three_layers.c'
fi

run() { # NUMBER TEXT OUTPUT PROGRAM...
    number=$1 text=$2 want=$3
    shift 3
    "$@" >"$work/out" 2>"$work/err"
    status=$?
    if test $status -eq 0 && test "$(cat "$work/out")" = "$want"; then
        echo "ok $number - $text"
    else
        sed 's/^/# /' "$work/out" "$work/err"
        echo "not ok $number - $text (exit code $status)"
    fi
}
run 2 'three layers on reference' "reference  $right" "$program" reference
if test -f "$build/backends/opencl/opencl.la"; then
    run 3 'three layers on opencl' "opencl     $right" "$program" opencl
    run 4 "three layers in the caller's OpenCL" "$right_and_10" "$build/docs/examples/opencl_interop" \
        'Portable Computing Language'
else
    echo 'ok 3 - three layers on opencl # SKIP built without OpenCL'
    echo "ok 4 - three layers in the caller's OpenCL # SKIP built without OpenCL"
fi
