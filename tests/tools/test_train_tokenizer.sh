#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm train-tokenizer: the same texts give the same file, which tfm tokenize reads; a folder is its *.txt; what
# cannot be done is told in one line and leaves the old file as it was, with nothing beside it.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"

text=$srcdir/tests/golden/long.txt
# left: nothing but these files is in the folder
left() { test "$(ls -A | tr '\n' ' ')" = "$*${*:+ }"; }

call train-tokenizer --data "$text" --vocab 480 --out a.gguf
test $code -eq 0 && test ! -s "$out" && grep -q '480 tokens, 222 merges' "$err" && left a.gguf
verdict $? 'a vocabulary of 480 tokens'
call train-tokenizer --data "$text" --vocab 480 -o b.gguf
test $code -eq 0 && cmp -s a.gguf b.gguf
verdict $? 'once more: the same bytes'
call tokenize -m a.gguf -p '<|bos|>Sir Walter'
test $code -eq 0 && grep -q '^0 [0-9]' "$out"
verdict $? 'tfm tokenize reads a file that has nothing but a tokenizer'
call tokenize -m a.gguf --text -p '2024 don'\''t'
test "$(cut -f 2 "$out" | tr -d '\n')" = '"2""0""2""4"" d""on""'\''""t"'
verdict $? 'the text comes back in pieces'
call run -m a.gguf -n 1
failed_with 1 a.gguf
verdict $? 'tfm run wants more than a tokenizer'

# ---- folders ----
mkdir texts texts/deeper.txt
head -n 20 "$text" >texts/b.txt
tail -n +21 "$text" >texts/a.txt
echo 'not this one: zzzzzzzzzzzzzzzzzzzzzzzz' >texts/c.md
call train-tokenizer --data texts --vocab 480 --out c.gguf
test $code -eq 0 && cmp -s a.gguf c.gguf && grep -q '2 files' "$err"
verdict $? 'a folder: its *.txt, whatever the order'

# ---- settings ----
call train-tokenizer --data "$text" --vocab 300 --out d.gguf --bos '' --eos '' --pre smollm
test $code -eq 0 && call tokenize -m d.gguf -p '<|bos|>' && grep -q '^27 91 ' "$out"
verdict $? 'without control tokens the bytes come first'
call train-tokenizer --data "$text" --vocab 300 --out d.gguf --add-bos
test $code -eq 0 && call tokenize -m d.gguf -p a && test "$(cat "$out")" = '0 66'
verdict $? '--add-bos'
rm -r texts ./*.gguf

# ---- what cannot be done: what the line must hold, the exit code; then the arguments ----
: >empty.txt
printf 'caf\351\n' >latin1.txt
mkdir nothing
while IFS='|' read -r status words arguments; do
    echo old >old.gguf
    # shellcheck disable=SC2086
    call train-tokenizer $arguments
    failed_with "$status" "$words" && test "$(cat old.gguf)" = old &&
        left empty.txt latin1.txt nothing old.gguf
    verdict $? "$arguments: $words"
done <<END
2|--data FILE|--vocab 300 --out old.gguf
2|--vocab N|--data $text --out old.gguf
2|--out FILE|--data $text --vocab 300
2|'0' is not a whole number|--data $text --vocab 0 --out old.gguf
2|'gpt2' is not one of|--data $text --vocab 300 --out old.gguf --pre gpt2
1|must be 258|--data $text --vocab 257 --out old.gguf
1|only|--data $text --vocab 5000 --out old.gguf
1|no text|--data empty.txt --vocab 300 --out old.gguf
1|offset 3|--data latin1.txt --vocab 300 --out old.gguf
1|no *.txt|--data nothing --vocab 300 --out old.gguf
1|nowhere.txt|--data nowhere.txt --vocab 300 --out old.gguf
1|nowhere/a.gguf|--data $text --vocab 300 --out nowhere/a.gguf
1|folder|--data $text --vocab 300 --out nothing
1|/dev/full|--data $text --vocab 300 --out /dev/full
END

# A disk that fills up while the file is written; the signal that comes with a limit must not end the program.
echo old >old.gguf
(
    ulimit -f 1
    call train-tokenizer --data "$text" --vocab 400 --out old.gguf
    failed_with 1 old.gguf
)
test $? -eq 0 && test "$(cat old.gguf)" = old && left empty.txt latin1.txt nothing old.gguf
verdict $? 'a disk that fills up: the old file stays, nothing is beside it'
finish
