#!/bin/sh
# SPDX-License-Identifier: MIT
# A HOME that cannot be written, or none (case A40): PoCL wants a folder for built kernels and gives up its devices
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

# Nobody, not even root, can make a folder in /dev/null.
env -u POCL_CACHE_DIR -u XDG_CACHE_HOME HOME=/dev/null \
    "$tfm" run --backend opencl -n 2 </dev/null >"$out" 2>"$err"
code=$?
test $code -eq 0 && cmp -s "$out" "$work/text" && test "$(lines "$err")" -eq 2 &&
    grep -q 'POCL_CACHE_DIR' "$err" && test -z "$(ls "$TMPDIR")"
verdict $? 'HOME=/dev/null: runs, one line more, nothing left behind'

# listed VARIABLE=VALUE...: the device is there (which needs no kernel), nothing is left behind
listed() {
    env -u POCL_CACHE_DIR -u XDG_CACHE_HOME "$@" "$tfm" backends </dev/null >"$out" 2>"$err"
    code=$?
    test $code -eq 0 && grep -q '^opencl .* usable ' "$out" && test ! -s "$err" &&
        test -z "$(ls "$TMPDIR")"
}
listed HOME=/proc/none
verdict $? 'HOME in a file system without folders'
listed -u HOME XDG_CACHE_HOME=/dev/null
verdict $? 'XDG_CACHE_HOME=/dev/null, no HOME'
if test "$(id -u)" -ne 0; then
    mkdir -m 555 "$work/readonly"
    listed HOME="$work/readonly"
    verdict $? 'a HOME without write permission'
fi
listed HOME="$work/home" && test -d "$work/home/.cache/pocl"
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
