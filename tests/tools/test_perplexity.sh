#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm perplexity on a toy model, held to the logits that tfm logits prints. Catches a window that is off by one,
# logits of the wrong token, a cache that is not emptied between windows, tokens scored twice or not at all with --all,
# bytes of other tokens than the scored ones, differences that are not paired, and settings that change nothing.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
toy toy.gguf
TFM_BACKEND=reference TFM_MODEL=$work/here/toy.gguf
export TFM_BACKEND TFM_MODEL
near() { # WANT HAVE BOUND
    echo "$1 $2" | awk -v bound="$3" '{ d = $1 - $2; if (d < 0) d = -d; exit !(NF == 2 && d <= bound) }'
}

# ---- against tfm logits ----------------------------------------------------------------------------
ids='97 98 284 100 32 105 99 101 120 33 34 284 50 51 52 290 7'
echo "$ids" >ids
# -ln p of the id in $2 after the ids in $1
score() {
    "$tfm" logits --ids "$1" --top 1000 --kv f32 2>"$err" | awk -F '\t' -v id="$2" '
        { n++; v[n] = $3; if (n == 1) most = $3; if ($1 == id) mine = $3 }
        END { for (i = 1; i <= n; i++) sum += exp(v[i] - most); print log(sum) + most - mine }'
}
# Windows of 8: scored are the tokens 5, 6 and 7 of each.
: >"$work/scores"
score 97,98,284,100,32 105 >>"$work/scores"
score 97,98,284,100,32,105 99 >>"$work/scores"
score 97,98,284,100,32,105,99 101 >>"$work/scores"
score 120,33,34,284,50 51 >>"$work/scores"
score 120,33,34,284,50,51 52 >>"$work/scores"
score 120,33,34,284,50,51,52 290 >>"$work/scores"
want=$(awk '{ s += $1 } END { printf "%.6f", s / NR }' "$work/scores")
error=$(awk '{ v[NR] = $1; s += $1 } END { m = s / NR; for (i in v) q += (v[i] - m) ^ 2; printf "%.6f", sqrt(q / (NR - 1) / NR) }' "$work/scores")
call perplexity --ids ids -c 8 --kv f32 --json
test $code -eq 0 && test ! -s "$err" && test "$(json tokens)" -eq 17 && test "$(json windows)" -eq 2 &&
    test "$(json scored)" -eq 6 && near "$want" "$(json settings.0.mean)" 2e-5
verdict $? 'the mean over the second half of each window, each token after those before it'
near "$error" "$(json settings.0.mean_error)" 2e-5 &&
    near "$(json settings.0.mean)" "$(json settings.0.perplexity | awk '{ printf "%.9f", log($1) }')" 1e-8
verdict $? 'standard error and perplexity follow from the scores'
mean=$(json settings.0.mean)
for rows in 1 3 5; do
    call perplexity --ids ids -c 8 --kv f32 --json -b $rows
    test $code -eq 0 && near "$mean" "$(json settings.0.mean)" 1e-5
    verdict $? "the same in runs of $rows rows"
done
call perplexity --ids ids -c 8 --kv f32 --json --chunks 1
want=$(awk 'NR <= 3 { s += $1 } END { printf "%.6f", s / 3 }' "$work/scores")
test "$(json windows)" -eq 1 && near "$want" "$(json settings.0.mean)" 2e-5
verdict $? '--chunks'
# an odd window: tokens 4, 5 and 6 of 7
score 97,98,284,100 32 >"$work/scores"
score 97,98,284,100,32 105 >>"$work/scores"
score 97,98,284,100,32,105 99 >>"$work/scores"
want=$(awk '{ s += $1 } END { printf "%.6f", s / NR }' "$work/scores")
call perplexity --ids ids -c 7 --kv f32 --json --chunks 1
test "$(json scored)" -eq 3 && near "$want" "$(json settings.0.mean)" 2e-5
verdict $? 'a window of odd length'

# ---- every token --------------------------------------------------------------------------------------
# Windows of 8 in 17 tokens begin at 0, 4, 8 and 9, and score 1-7, 8-11, 12-15 and 16.
every() { # WINDOW-BEGIN FIRST LAST: scores of these tokens of $ids, each after those from WINDOW-BEGIN on
    for at in $(seq "$2" "$3"); do
        score "$(echo "$ids" | cut -d ' ' -f "$(($1 + 1))-$at" | tr ' ' ',')" "$(echo "$ids" | cut -d ' ' -f $((at + 1)))"
    done
}
{ every 0 1 7 && every 4 8 11 && every 8 12 15 && every 9 16 16; } >"$work/scores"
sum=$(awk '{ s += $1 } END { printf "%.6f", s }' "$work/scores")
want=$(echo "$sum" | awk '{ printf "%.6f", $1 / 16 }')
call perplexity --ids ids -c 8 --kv f32 --json --all
test $code -eq 0 && test "$(json windows)" -eq 4 && test "$(json scored)" -eq 16 && near "$want" "$(json settings.0.mean)" 2e-5
verdict $? '--all: every token but the first, once, after at least half a window'
# Without the first: hello (284) twice, a control token (290), which has no text, and 13 tokens of a byte.
bytes=23
test "$(json bytes)" -eq "$bytes" &&
    near "$(echo "$sum $bytes" | awk '{ printf "%.6f", $1 / log(2) / $2 }')" "$(json settings.0.bits_a_byte)" 5e-5
verdict $? 'bits a byte: over the bytes of the scored tokens'
for rows in 1 3 5; do
    call perplexity --ids ids -c 8 --kv f32 --json --all -b $rows
    test $code -eq 0 && near "$want" "$(json settings.0.mean)" 1e-5
    verdict $? "--all in runs of $rows rows"
done
call perplexity --ids ids -c 8 --kv f32 --json --all --chunks 2
want=$(awk 'NR <= 11 { s += $1 } END { printf "%.6f", s / 11 }' "$work/scores")
test "$(json windows)" -eq 2 && test "$(json scored)" -eq 11 && near "$want" "$(json settings.0.mean)" 2e-5
verdict $? '--all --chunks'
for window in 4 5 7 9 16 17 18 4000; do
    call perplexity --ids ids -c $window --json --all
    test $code -eq 0 && test "$(json scored)" -eq 16 && test "$(json bytes)" -eq "$bytes"
    verdict $? "--all in windows of $window: 16 tokens"
done
call perplexity --ids ids -c 4000 --kv f32 --json --all
want=$(every 0 1 16 | awk '{ s += $1 } END { printf "%.6f", s / NR }')
near "$want" "$(json settings.0.mean)" 2e-5
verdict $? '--all of a text shorter than a window: one window'
echo 97 >one
call perplexity --ids one --all
failed_with 1 '1 tokens'
verdict $? '--all of one token: nothing to score'

# ---- a text, and the printed form ------------------------------------------------------------------
printf 'hello 12 a text that is long enough for some windows, and <|im_end|> is text in it' >text
"$tfm" tokenize -f text --no-special >"$work/tokens"
call perplexity -f text -c 6 --json
mean=$(json settings.0.mean) tokens=$(json tokens)
test "$tokens" -eq "$(wc -w <"$work/tokens")"
verdict $? 'a text is tokenized whole, and control tokens written out in it are text'
call perplexity -f text -c 6 --json --all
test $code -eq 0 && test "$(json tokens)" -eq "$tokens" && test "$(json scored)" -eq "$tokens" &&
    test "$(json bytes)" -eq "$(wc -c <text)"
verdict $? '--all of a text: its first token is scored, too, and every byte counts'
call perplexity --ids "$work/tokens" -c 6 --json
test "$(json settings.0.mean)" = "$mean"
verdict $? '--ids gives what the text gives'
tr ' ' ',' <"$work/tokens" >"$work/commas"
call perplexity --ids "$work/commas" -c 6
test $code -eq 0 && test ! -s "$err" && test "$(lines "$out")" -eq 2 &&
    grep -q "^$tokens tokens, $((tokens / 6)) windows of 6, $((tokens / 6 * 2)) tokens scored ([0-9]* bytes)\$" "$out" &&
    grep -q '^mean [0-9.]* ± [0-9.]*, perplexity [0-9.]* ± [0-9.]*, [0-9.]* bits a byte (reference: .*)$' "$out"
verdict $? 'two lines'

# ---- the paired difference -------------------------------------------------------------------------
call perplexity -f text -c 8 --kv f32 --against kv=f32 --json
test $code -eq 0 && test "$(json 'settings.#')" -eq 2 && test "$(json difference.mean)" = 0.0 &&
    test "$(json difference.mean_error)" = 0.0 && test "$(json settings.0.mean)" = "$(json settings.1.mean)"
verdict $? 'against itself: exactly nothing'
call perplexity -f text -c 8 --kv f32 --against kv=f16 --json
first=$(json settings.0.mean) second=$(json settings.1.mean)
test $code -eq 0 && test "$first" != "$second" && test "$(json settings.1.setting)" = kv=f16 &&
    near "$(echo "$first $second" | awk '{ printf "%.9f", $2 - $1 }')" "$(json difference.mean)" 1e-6 &&
    echo "$(json difference.mean_error) $(json settings.0.mean_error)" | awk '{ exit !($1 > 0 && $1 < $2 / 10) }' &&
    near "$(json difference.mean | awk '{ printf "%.9f", 100 * (exp($1) - 1) }')" "$(json difference.percent)" 1e-5
verdict $? 'kv=f16: second minus first, with an error of the pairs, far below that of the means'
call perplexity -f text -c 8 --against backend=nowhere
failed_with 1 nowhere
verdict $? 'backend=: it is used for the second time'
call perplexity -f text -c 8 --kv f32 --against TFM_BACKEND=nowhere
failed_with 1 nowhere
verdict $? 'a variable: it is set for the second time'
for setting in kv kv=f64 nothing=1 =f32 TFM; do
    call perplexity -f text -c 8 --against $setting
    failed_with 2 "$setting" || { test $setting = kv=f64 && failed_with 2 f64; } || { test $setting = nothing=1 && failed_with 2 "'nothing'"; }
    verdict $? "--against $setting is refused"
done

# ---- windows and what the model was trained for (256) ------------------------------------------------
seq 1 280 >many
call perplexity --ids many --json
test $code -eq 0 && test "$(json window)" -eq 256
verdict $? 'the default window is no longer than what the model was trained for'
call perplexity --ids many -c 270
failed_with 1 256
verdict $? 'a window that was asked for is not changed'

# ---- bad input -------------------------------------------------------------------------------------
call perplexity -f text -c 500
failed_with 1 "$tokens" && grep -q 500 "$err"
verdict $? 'shorter than a window: both counts'
echo '1 2 3x 4' >bad
call perplexity --ids bad -c 4
failed_with 1 'bad: no token id at byte 4'
verdict $? 'a word that is no id'
echo '1 -2 3 4' >bad
call perplexity --ids bad -c 4
failed_with 1 'no token id'
verdict $? 'a negative id'
echo '1 2 99999 4' >bad
call perplexity --ids bad -c 4
failed_with 1 99999
verdict $? 'an id that the vocabulary lacks'
call perplexity
failed_with 2 '-f FILE'
verdict $? 'no text'
call perplexity -f text --ids ids
failed_with 2 '-f FILE'
verdict $? 'two texts'
call perplexity -f nowhere.txt
failed_with 1 nowhere.txt
verdict $? 'a file that is not there'
call perplexity -f text -c 3
failed_with 2 4
verdict $? 'a window too small to score in'
finish
