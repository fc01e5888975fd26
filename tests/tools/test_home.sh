#!/bin/sh
# SPDX-License-Identifier: MIT
# A HOME that cannot be written, or none: PoCL wants a folder for built kernels and gives up its devices
# without one. The program finds one, says so in one line, and leaves nothing behind.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
toy toy.gguf
TFM_MODEL=$work/here/toy.gguf TMPDIR=$work/tmp
export TFM_MODEL TMPDIR
mkdir "$TMPDIR"
call run --backend opencl -n 2
if test $code -ne 0; then
    echo "1..0 # SKIP opencl is not usable here: $(cat "$err")"
    exit 77
fi
cp "$out" "$work/text"

# Nobody, not even root, can make a folder there.
for home in /dev/null /proc/none; do
    env -u POCL_CACHE_DIR -u XDG_CACHE_HOME HOME=$home \
        "$tfm" run --backend opencl -n 2 </dev/null >"$out" 2>"$err"
    code=$?
    test $code -eq 0 && cmp -s "$out" "$work/text" && test "$(lines "$err")" -eq 2 &&
        grep -q 'POCL_CACHE_DIR' "$err" && test -z "$(ls "$TMPDIR")"
    verdict $? "HOME=$home"
done
env -u POCL_CACHE_DIR -u HOME XDG_CACHE_HOME=/dev/null \
    "$tfm" run --backend opencl -n 2 </dev/null >"$out" 2>"$err"
code=$?
test $code -eq 0 && cmp -s "$out" "$work/text" && test -z "$(ls "$TMPDIR")"
verdict $? 'XDG_CACHE_HOME=/dev/null, no HOME'
env -u POCL_CACHE_DIR -u XDG_CACHE_HOME HOME="$work/home" \
    "$tfm" run --backend opencl -n 2 </dev/null >"$out" 2>"$err"
code=$?
test $code -eq 0 && test "$(lines "$err")" -eq 1 && test -d "$work/home/.cache/pocl" &&
    test -z "$(ls "$TMPDIR")"
verdict $? 'a HOME that can be made is left to PoCL'
env -u POCL_CACHE_DIR -u XDG_CACHE_HOME HOME=/dev/null TMPDIR=/dev/null \
    "$tfm" run --backend opencl -n 2 </dev/null >"$out" 2>"$err"
code=$?
failed_with 1 opencl
verdict $? 'nowhere to write at all: one line, exit code 1'
env -u POCL_CACHE_DIR -u XDG_CACHE_HOME HOME=/dev/null \
    "$tfm" run --backend reference -n 2 </dev/null >"$out" 2>"$err"
code=$?
test $code -eq 0 && test "$(lines "$err")" -eq 1 && test -z "$(ls "$TMPDIR")"
verdict $? 'reference does not care'
finish
