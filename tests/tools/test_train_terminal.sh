#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm train on a terminal: the bar below the lines of steps. Catches one that tears lines, that stays behind at the end,
# at Ctrl-C or under a message, that is wider than the window, and one that is drawn where nobody looks.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
TFM_BACKEND=reference TERM=xterm
export TFM_BACKEND TERM
terminal=$builddir/tests/tools/terminal
"$terminal" 80 true >/dev/null 2>&1 || { echo '1..0 # SKIP no pseudo-terminal'; exit 77; }
awk 'BEGIN { for (i = 0; i < 400; i++) printf "The cat sees the %s.\n", i % 3 ? "dog" : "child" }' >text.txt
sed -e 's/"vocab": 512/"vocab": 270/' -e 's/"width": 64/"width": 32/' \
    -e 's/"ffn_width": 192/"ffn_width": 64/' -e 's/"length": 64/"length": 16/' \
    "$srcdir/tests/train/data/tiny.json" >small.json
sed -e 's/"rate": 3e-3/"rate": 100, "weight_decay": 100/' -e 's/"warmup": 10/"warmup": 0/' small.json >wild.json
step='^line: step [0-9]*/60  loss [0-9.]*  rate [0-9.e-]*  norm [0-9.]*\( (clipped)\)\{0,1\}  [0-9]* tok/s  [0-9]* ms$'

# on_terminal COLUMNS...: the screen of a training, in $out
on_terminal() {
    rm -rf run
    "$terminal" "$@" >"$out" 2>"$err" </dev/null
    code=$?
}
# ended_clean: no piece of a bar is on the screen, and the cursor is in an empty line
ended_clean() {
    ! grep -q '^line: .*\(training\|encoding\) *[[0-9]' "$out" && test "$(grep '^line:' "$out" | tail -n 1)" = 'line: '
}
# widest: columns of the widest bar that was there
widest() { sed -n 's/^over: //p' "$out" | awk '{ if (length > n) n = length } END { print n + 0 }'; }

on_terminal 80 "$tfm" train --data text.txt --config small.json --out run
test $code -eq 0 && test "$(grep -c '^over: training \[#* *\] *[0-9]*% [0-9]*:[0-9][0-9] left$' "$out")" -ge 59 &&
    grep -q '^over: training \[ *\]   0%$' "$out"
verdict $? 'a bar in the last line from the start, with the time left after every step'
ended_clean && grep -q '^over: encoding' "$out"
verdict $? 'nothing of it is left at the end'
test "$(grep -c "$step" "$out")" -eq 60 && test "$(grep -c '^line: validation after step \(30\|60\)  loss [0-9.]*  perplexity [0-9.]*  [0-9]* tokens$' "$out")" -eq 2 &&
    test "$(grep -c '^line: sample after step \(30\|60\): ' "$out")" -eq 2
verdict $? 'lines are whole'

for columns in 200 50 30 3; do
    on_terminal $columns "$tfm" train --data text.txt --config small.json --out run
    n=$(widest)
    test $code -eq 0 && ended_clean && test "$n" -le $columns && test "$(grep -c "$step" "$out")" -eq 60 &&
        { test $columns -lt 30 || grep -q '^over: training.* [0-9]*% [0-9]*:[0-9][0-9] left$' "$out"; }
    verdict $? "$columns columns: the widest bar has $n"
done
on_terminal 100 -w 'step 4/' 40 -w 'step 30/' 70 "$tfm" train --data text.txt --config small.json --out run
test $code -eq 0 && ended_clean && test "$(sed -n 's/^over: training.*left$/&/p' "$out" | awk '{ print length }' | sort -u | wc -l)" -ge 3
verdict $? 'a window that changes while it trains: the bar follows'

# ---- interrupted ----
on_terminal 80 -t 'step 3/' '^C' "$tfm" train --data text.txt --config small.json --out run
test $code -eq 130 && ended_clean && ! grep -q '^line: .*^C' "$out" && test -f run/last.ckpt && test "$(grep -c "$step" "$out")" -lt 60
verdict $? 'Ctrl-C: the step ends, its checkpoint is written, the line is clean'
for signal in 15 1; do
    on_terminal 80 -s 'step 3/' $signal "$tfm" train --data text.txt --config small.json --out run
    test $code -eq $((128 + signal)) && ended_clean
    verdict $? "signal $signal ends it, and the line is clean"
done

# a long text is being encoded: the signal does not wait for its end, and no file stays behind
awk 'BEGIN { for (i = 0; i < 900000; i++) printf "The cat sees the %s %d.\n", i % 3 ? "dog" : "child", i }' >long.txt
"$tfm" train-tokenizer --data text.txt --vocab 270 --out t.gguf >"$out" 2>"$err" || exit 99
on_terminal 80 -t 'encoding' '^C' "$tfm" train --data long.txt --tokenizer t.gguf --config small.json --out run
test $code -eq 130 && ended_clean && test "$(ls -A run)" = tokenizer.gguf && ! grep -q 'encoding.*9[0-9]%' "$out"
verdict $? 'Ctrl-C within a text of 20 MB: at once, and only the tokenizer is there'

# ---- messages ----
on_terminal 80 "$tfm" train --data text.txt --config wild.json --out run
test $code -eq 1 && ended_clean && grep -q '^line: tfm train: .*step [0-9]*.*not finite' "$out"
verdict $? 'an error while the bar is there has a line of its own'

# ---- where there is none ----
TERM=dumb
on_terminal 80 "$tfm" train --data text.txt --config small.json --out run
test $code -eq 0 && ! grep -q '^over:' "$out" && grep -q '^escapes: 0$' "$out" && test "$(grep -c "$step" "$out")" -eq 60
verdict $? 'TERM=dumb: no bar'
TERM=xterm
# shellcheck disable=SC2016
on_terminal 80 sh -c '"$0" train --data text.txt --config small.json --out run 2>messages' "$tfm"
test $code -eq 0 && ! grep -q '^over:' "$out" && ! grep -q "[$(printf '\033\r')]" messages && test "$(grep -c "$step" "$out")" -eq 60
verdict $? 'standard error in a file: no bar'
# shellcheck disable=SC2016
on_terminal 80 sh -c '"$0" train --data text.txt --config small.json --out run >lines' "$tfm"
test $code -eq 0 && grep -q '^over: training \[#' "$out" && ended_clean && ! grep -q "[$(printf '\033\r')]" lines &&
    test "$(grep -c '^step ' lines)" -eq 60
verdict $? 'standard output in a file: the bar alone on the terminal'
on_terminal 80 env NO_COLOR=1 "$tfm" train --data text.txt --config small.json --out run
test $code -eq 0 && grep -q '^over: training \[#' "$out" && grep -q '^escapes: 0$' "$out" && ended_clean
verdict $? 'NO_COLOR: a bar without escape sequences'
finish
