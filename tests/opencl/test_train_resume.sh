#!/bin/sh
# SPDX-License-Identifier: MIT
# Training on PoCL: the same steps give the same checkpoint, byte for byte, at once, in two halves and however often the process
# is killed. Catches a sum whose order is left to chance, and anything that the next step depends on and that is in no
# checkpoint.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
. "$srcdir/tests/train/resume.sh"
"$tfm" backends 2>/dev/null | grep -q 'Portable Computing Language' || { echo 'no PoCL device'; exit 77; }
TFM_BACKEND='opencl:Portable Computing Language' TFM_STRICT=1
export TFM_BACKEND TFM_STRICT
arguments="--data $srcdir/docs/design.md --config $tiny"

# shellcheck disable=SC2086
{
    call train $arguments --out whole
    test $code -eq 0 && test "$(losses whole | wc -l)" -eq 60
    verdict $? '60 steps'
    call train $arguments --out twin --save-every 10
    test $code -eq 0 && same whole twin
    verdict $? 'once more: the same files'
    mkdir halves
    call train $arguments --out halves --resume --steps 30
    test $code -eq 0 && call train $arguments --out halves --resume && test $code -eq 0 && same whole halves
    verdict $? 'in two halves: the same files'
    kill_and_resume killed "${TFM_TEST_MOMENTS:-12}" whole $arguments && same whole killed && tidy killed
    verdict $? "kill -9 at $killed moments, $inside of them inside a save: the same files"
}
finish
