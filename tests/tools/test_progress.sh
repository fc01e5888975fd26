#!/bin/sh
# SPDX-License-Identifier: MIT
# The bar while a model loads: on a terminal only, without colour under NO_COLOR, not at all on a dumb
# one. Catches control characters in logs.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
toy toy.gguf
TFM_BACKEND=reference TFM_MODEL=$work/here/toy.gguf
export TFM_BACKEND TFM_MODEL
script -qec true /dev/null >/dev/null 2>&1 || { echo '1..0 # SKIP no script(1) to make a terminal with'; exit 77; }
escape=$(printf '\033') return=$(printf '\r')

# on_terminal VARIABLE=VALUE...: what the program writes to a terminal as standard error, in $out
on_terminal() {
    env "$@" script -qec "'$tfm' run -n 1 -p a >'$work/text'" /dev/null >"$out" 2>"$err" </dev/null
    code=$?
}
on_terminal TERM=xterm
grep -q "loading \[.*100%" "$out" && grep -q "$escape\[" "$out" && test "$(lines "$work/text")" -eq 1
verdict $? 'a bar on a terminal'
on_terminal TERM=xterm NO_COLOR=1
grep -q "loading \[.*100%" "$out" && ! grep -q "$escape" "$out"
verdict $? 'NO_COLOR: a bar without colour'
on_terminal TERM=dumb
! grep -q loading "$out" && ! grep -q "$escape" "$out"
verdict $? 'TERM=dumb: no bar'
call_with "TERM=xterm" run -n 1 -p a
test "$(lines "$err")" -eq 1 && ! grep -q "[$escape$return]" "$err"
verdict $? 'no bar when standard error is a file'
finish
