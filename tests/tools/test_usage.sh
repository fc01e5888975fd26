#!/bin/sh
# SPDX-License-Identifier: MIT
# Wrong usage: one line, exit code 2, nothing on standard output, before any model or device is looked
# for. Help and version: on standard output, exit code 0. Catches a number that is read in part (12x), an
# option that another verb owns, a range that is not checked, a verb without help.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"

# Nothing here gets as far as a model.
TFM_MODEL=nowhere.gguf
export TFM_MODEL

# What the line must hold; then the command line.
while IFS='|' read -r text words; do
    # shellcheck disable=SC2086
    call $words
    failed_with 2 "$text" && grep -q -F -e '--help' "$err"
    verdict $? "tfm $words: $text"
done <<'END'
there is no verb 'rum'|rum
there is no verb 'rum'|help rum
unknown option --foo|run --foo
unknown option -q|run -q
unknown option --top|run --top 3
unknown option --ids|run --ids 1,2
unknown option --json|run --json
unknown option -r|plan -r 3
-n needs an argument|run -n
--temp needs an argument|run --temp
'hello' is not an option|run hello
--verbose takes no value|run --verbose=1
'12x' is not a whole number|run -n 12x
'' is not a whole number|run --predict=
'-2' is not a whole number from -1|run -n -2
'99999999999999999999' is not a whole number|run -n 99999999999999999999
'2147483648' is not a whole number from -1 to 2147483647|run -n 2147483648
'65537' is not a whole number from 1 to 65536|run -b 65537
'1e3' is not a whole number|run -c 1e3
'0' is not a whole number from 1|run -b 0
'-1' is not a number|run --temp -1
'nan' is not a number|run --temp nan
'inf' is not a number|run --temp inf
'0x1' is not a number|run --temp 0x1
'1.5' is not a number from 0 to 1|run --top-p 1.5
'-1' is not a whole number|run --seed -1
'18446744073709551616' is not a whole number|run --seed 18446744073709551616
'f64' is not one of f16|run --kv f64
'f' is not one of f16|run --kv f
'md,json' is not one of|bench -o md,json
exclude each other|run -p a -f b
no text: give -p TEXT or -f FILE|tokenize
no text: give -p TEXT or -f FILE|logits
exclude each other|logits --ids 1 -p a
'1,,2' is not a list|logits --ids 1,,2
'1,' is not a list|logits --ids 1,
'a' is not a list|logits --ids a
'0' is not a whole number from 1|logits --ids 1 --top 0
nothing left to measure|bench -p 0 -n 0
'xml' is not one of md|bench -o xml
'md' is not one of text|plan -o md
'0' is not a whole number from 1|bench -r 0
END

call
test $code -eq 2 && test ! -s "$out" && grep -q '^usage: tfm VERB' "$err"
verdict $? 'without a verb: usage on standard error, exit code 2'

for verb in run tokenize logits bench bench-ops plan backends check-backend; do
    call "$verb" --help
    test $code -eq 0 && test ! -s "$err" && grep -q "^usage: tfm $verb" "$out" &&
        grep -q -e '--plugin FILE' "$out" && ! awk 'length($0) > 79' "$out" | grep -q .
    verdict $? "tfm $verb --help, no line longer than 79"
    cp "$out" "$work/help"
    call help "$verb"
    test $code -eq 0 && cmp -s "$out" "$work/help"
    verdict $? "tfm help $verb is the same"
    call --help
    grep -q "^  $verb " "$out"
    verdict $? "tfm --help lists $verb"
done
for verb in run tokenize logits bench plan; do
    call "$verb" --help
    cat "$out" >"$work/help"
    for option in m c b t v -kv -backend -plugin; do
        grep -q "^ .*-${option}[, ]" "$work/help" || echo "$option"
    done >"$out"
    test ! -s "$out"
    verdict $? "tfm $verb takes the common options"
done
call --version
test $code -eq 0 && grep -q -x 'tfm [0-9.]*' "$out"
verdict $? 'tfm --version'
finish
