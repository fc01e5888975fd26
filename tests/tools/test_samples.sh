#!/bin/sh
# SPDX-License-Identifier: MIT
# models/check-samples on texts whose numbers are known. Catches words that are counted wrong, a stretch that is missed at
# the end of a text or counted across samples, and a verdict that is always yes.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
python3 -c '' 2>/dev/null || { echo '1..0 # SKIP no python3'; exit 77; }
check() {
    python3 "$srcdir/models/check-samples" "$@" >"$out" 2>"$err" </dev/null
    code=$?
}
mkdir texts
# 25 words, then 5 others
echo "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty--twenty-one twenty-two twenty-three twenty-four don't" >texts/a.txt
echo 'alpha beta gamma delta epsilon' >texts/b.txt
echo 'not a text zeta' >texts/c.md
sample() { # FILE TEXT...: one sample each
    file=$1
    shift
    echo 'a head that is no sample: zeta zeta zeta' >"$file"
    for text; do printf -- '--- seed 1: head\n%s\n' "$text" >>"$file"; done
}
sample s 'Beta, ALPHA gamma; five six seven' "eight: nine ten don't"
check s texts
test $code -eq 0 && grep -q '^2 samples, 10 words: 100.00 % of them occur in the 2 texts$' "$out" &&
    grep -q '^longest copied stretch: 3 words: five six seven$' "$out"
verdict $? 'case and punctuation do not count, samples are apart'
sample s 'alpha zeta gamma beta alpha gamma alpha beta alpha gamma'
check s texts
test $code -eq 1 && grep -q '10 words: 90.00 %.*(not: zeta)$' "$out"
verdict $? 'too many words that do not occur, a file that is no .txt does not help'
# 19 of 20 words: 95 %
sample s 'alpha beta alpha beta alpha beta alpha beta alpha beta alpha beta alpha beta alpha beta alpha beta alpha zeta'
check s texts
test $code -eq 0 && grep -q ' 95.00 %' "$out"
verdict $? '95 % are enough'
sample s "x one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
alpha beta alpha beta alpha beta alpha beta alpha beta alpha beta alpha beta alpha beta alpha beta alpha beta alpha beta"
check s texts
test $code -eq 0 && grep -q '^longest copied stretch: 19 words: one two .* nineteen$' "$out"
verdict $? '19 words in a row are allowed'
sample s 'alpha six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "nineteen twenty" twenty-one twenty-two, twenty-three twenty-four
DON'"'"'T alpha'
check s texts
test $code -eq 1 && grep -q '^longest copied stretch: 20 words: six .* don.t$' "$out"
verdict $? '20 are not, at the end of a text and over a line end'
sample s '10 20 30'
check s texts
test $code -eq 2 && test ! -s "$out"
verdict $? 'no word: an error'
mkdir empty
sample s alpha
check s empty
test $code -eq 2
verdict $? 'no text: an error'
toy toy.gguf
TFM=$tfm TFM_BACKEND=reference sh "$srcdir/models/make-samples" toy.gguf >made 2>"$err" &&
    test "$(grep -c '^--- seed' made)" -eq 10
verdict $? 'make-samples writes ten'
finish
