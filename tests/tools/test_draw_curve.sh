#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm curve: runs of several folders in one picture. Catches losses of the wrong run, of the wrong kind or over the wrong
# axis, and names that get lost.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
metrics() { # FOLDER LOSS...: step 1, 2, ...; of even steps the validation loss, too
    mkdir -p "$1"
    step=0 file=$1/metrics.jsonl
    shift
    for loss; do
        step=$((step + 1))
        if test $((step % 2)) -eq 0; then held=", \"validation_loss\": 10"; else held=; fi
        echo "{\"step\": $step, \"tokens\": $((step * 1000)), \"loss\": $loss$held}"
    done >"$file"
}
metrics a 5 4 3 2
metrics b 9 8 7 6
# drawn NAME: the picture's legend holds it
drawn() { grep -q ">$1</text>" a.svg; }
call curve --run one=a --run two=b/metrics.jsonl --out a.svg --title 'A & B'
test $code -eq 0 && test ! -s "$out" && test ! -s "$err" && drawn one && drawn 'one, validation' && drawn two &&
    drawn 'two, validation' && drawn 'A &amp; B' && drawn steps && test "$(grep -c 'class="line c.".*clip-path' a.svg)" -eq 4
verdict $? 'two runs, both losses'
# from 2 to 10: the losses of run a end at the bottom, the validation losses are flat at the top
grep -q '<path class="line c0" clip-path="url(#inside)" d="M[^"]*744.0 392.0"/>' a.svg &&
    grep -q '<path class="line c1" stroke-dasharray="6 4" clip-path="url(#inside)" d="M[0-9.]* 40.0L744.0 40.0"/>' a.svg
verdict $? 'each line has its own points'
call curve --run a --run b --loss validation -o a.svg --x tokens
test $code -eq 0 && drawn a && drawn b && drawn tokens && test "$(grep -c 'class="line c.".*clip-path' a.svg)" -eq 2 &&
    ! grep -q dasharray a.svg && drawn 4000
verdict $? 'validation alone, over tokens, names by default'
call curve --run a --loss training -o a.svg
test $code -eq 0 && test "$(grep -c 'class="line c.".*clip-path' a.svg)" -eq 1 && ! drawn 'a, validation'
verdict $? 'training alone'
metrics c 1
echo old >old.svg
while IFS='|' read -r status words arguments; do
    # shellcheck disable=SC2086
    call curve $arguments
    failed_with "$status" "$words" && test "$(cat old.svg)" = old
    verdict $? "curve $arguments: $words"
done <<'END'
2|--run NAME=FILE|-o old.svg
2|--out FILE|--run a
2|NAME=FILE|--run =a -o old.svg
2|NAME=FILE|--run a= -o old.svg
1|nowhere|--run nowhere -o old.svg
1|no step of it has a validation loss|--run c --loss validation -o old.svg
1|line 1|--run old.svg -o old.svg
1|nowhere/a.svg|--run a -o nowhere/a.svg
END
finish
