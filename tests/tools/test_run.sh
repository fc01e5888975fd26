#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm run on a toy model: what is text and what is not, where the prompt comes from, every way in which a
# text ends. Catches messages in the text, a lost or doubled prompt, a text that does not follow the
# logits, a context passed or left unused, an interrupt or a failed write taken for success.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
toy toy.gguf
TFM_BACKEND=reference TFM_MODEL=$work/here/toy.gguf
export TFM_BACKEND TFM_MODEL
builtin='Once upon a time'

# Exit code 0, one line on standard error that tells how the text ended.
ended() { test $code -eq 0 && test "$(lines "$err")" -eq 1 && grep -q -F "ended: $1" "$err"; }
text_is() { printf '%s\n' "$1" | cmp -s - "$out"; }

# ---- what is printed -----------------------------------------------------------------------------
call run
ended '-n tokens' && grep -q "^$builtin." "$out" && grep -q 'generation 64 tokens' "$err"
verdict $? 'no argument: built-in prompt, 64 tokens'
cp "$out" "$work/builtin"
test "$(lines "$out")" -ge 1 && test "$(tail -c 1 "$out" | od -An -tx1 | tr -d ' ')" = 0a
verdict $? 'the text ends with a line end'
grep -q 'load [0-9]* ms | prompt 7 tokens, [0-9.]* tok/s | generation 64 tokens, [0-9.]* tok/s | KV 70/256 | reference: .* | fallback 0.0% (0 of [0-9]* nodes) | ended: ' "$err"
verdict $? 'the last line tells times, KV, backend, fallback'
call run -p "$builtin"
cmp -s "$out" "$work/builtin"
verdict $? '-p with the built-in prompt gives the same text'
call run -p "$builtin" --no-display-prompt
printf '%s' "$builtin" | cat - "$out" | cmp -s - "$work/builtin"
verdict $? '--no-display-prompt prints only what follows'
call run -p "$builtin" -n 0
ended '-n tokens' && text_is "$builtin"
verdict $? '-n 0 prints the prompt'
call run -p "$builtin" -b 1
cmp -s "$out" "$work/builtin"
verdict $? '-b 1 gives the same text'
call run -p "$builtin" --kv f32 -t 2 -v
test $code -eq 0 && grep -q 'device 0: reference' "$err" && grep -q 'KV cache' "$err" &&
    grep -q 'plan: .* 0 fell back' "$err" && ! grep -q 'device 0' "$out"
verdict $? '-v tells devices and memory, not in the text'

# The text is what the best logits say, one token after the other.
call tokenize -p 'On a'
ids=$(tr ' ' ',' <"$out") expected='On a'
for i in 1 2 3 4 5 6; do
    call logits --ids "$ids" --top 1 -t 1
    ids=$ids,$(cut -f 1 "$out")
    expected=$expected$(cut -f 2 "$out" | sed -e 's/^"//' -e 's/"$//' -e 's/\\\(.\)/\1/g')
done
call run -p 'On a' -n 6
text_is "$expected"
verdict $? "six tokens follow the logits: $expected"

# ---- where the prompt comes from -----------------------------------------------------------------
call tokenize -p 'hello world'
hello=$(wc -w <"$out")
call run -p 'hello world' -n 5
cp "$out" "$work/hello"
printf 'hello world\n' >"$work/line"
printf 'hello world' >"$work/bytes"
for input in line bytes; do
    "$tfm" run -n 5 <"$work/$input" >"$out" 2>"$err"
    code=$?
    cmp -s "$out" "$work/hello"
    verdict $? "standard input: $input"
done
(sleep 1; cat "$work/line") | "$tfm" run -n 5 >"$out" 2>"$err"
code=$?
cmp -s "$out" "$work/hello"
verdict $? 'standard input that comes late'
"$tfm" run -n 5 -p 'hello world' <"$work/line" >"$out" 2>"$err"
code=$?
cmp -s "$out" "$work/hello"
verdict $? '-p wins over standard input'
"$tfm" run <&- >"$out" 2>"$err"
code=$?
cmp -s "$out" "$work/builtin"
verdict $? 'closed standard input: the built-in prompt'
call run -n 5 -f "$work/bytes"
cmp -s "$out" "$work/hello"
verdict $? '-f FILE'
call run -n 0 -f "$work/line"
ended '-n tokens' && cmp -s "$out" "$work/line" && grep -q "prompt $((hello + 1)) tokens" "$err"
verdict $? '-f takes every byte, the line end too'
"$tfm" run -n 0 -f - <"$work/line" >"$out" 2>"$err"
code=$?
grep -q "prompt $((hello + 1)) tokens" "$err"
verdict $? '-f - is standard input, every byte'
call run -p '' -n 3
ended '-n tokens' && grep -q 'prompt 1 tokens' "$err"
verdict $? 'an empty prompt begins with the token that begins texts'
call run -f nowhere.txt
failed_with 1 nowhere.txt
verdict $? '-f: no such file'
call run -f .
failed_with 1 'cannot be read'
verdict $? '-f: a folder'
printf 'ab\377cd' >"$work/latin1"
call run -f "$work/latin1"
failed_with 1 UTF-8 && grep -q 2 "$err"
verdict $? 'no UTF-8: the byte offset is told'
call run -p 'a<|im_end|>b' -n 0
grep -q 'prompt 3 tokens' "$err"
verdict $? 'control tokens in the prompt are recognized'
call run -p 'a<|im_end|>b' -n 0 --no-special
test $code -eq 0 && ! grep -q 'prompt 3 tokens' "$err"
verdict $? '--no-special: they are text'

# ---- sampling ------------------------------------------------------------------------------------
call run --temp 1 --seed 7 -n 40
cp "$out" "$work/seven"
call run --temp 1 --seed 7 -n 40
cmp -s "$out" "$work/seven"
verdict $? 'the same seed gives the same text'
call run --temp 1 --seed 8 -n 40
! cmp -s "$out" "$work/seven"
verdict $? 'another seed another one'
call run --temp 1 -n 40
cp "$out" "$work/one"
call run --temp 1 -n 40
! cmp -s "$out" "$work/one"
verdict $? 'without a seed each time another one'
for flags in '--temp 0 --seed 9' '--temp 1 --top-k 1' '--temp 1 --top-p 0' '--temp 1e-30'; do
    # shellcheck disable=SC2086
    call run $flags
    cmp -s "$out" "$work/builtin"
    verdict $? "$flags is greedy"
done

# ---- how it ends ---------------------------------------------------------------------------------
call run -p 'hello' -c 8 -n 100
ended 'length' && grep -q 'generation 7 tokens' "$err"
verdict $? 'the context is full: length, every cell used'
call run -p 'hello world' -c 8 -n -1
ended 'length'
verdict $? '-n -1 ends with the context'
call run -p 'abcdefghij' -c 8
failed_with 1 '10 tokens' && grep -q 'context 8' "$err" && grep -q -e '-c 11' "$err"
verdict $? 'prompt longer than the context: both counts'
call run -p 'abcdefgh' -c 8
failed_with 1 '8 tokens'
verdict $? 'prompt as long as the context: no room for a token'
call run -p 'abcdefgh' -c 8 -n 0
ended '-n tokens'
verdict $? '... unless none is wanted'
call run -p 'abcdefg' -c 8
ended length && grep -q 'generation 1 tokens' "$err"
verdict $? '... and one less leaves room for one'
call run -c 257
failed_with 1 257
verdict $? 'a context larger than the model knows'
# a model whose text ends at the token that comes second
call logits -p hello --top 1
first=$(cut -f 1 "$out")
call tokenize -p hello
call logits --ids "$(tr ' ' ',' <"$out"),$first" --top 1
second=$(cut -f 1 "$out")
toy ends.gguf "end=$second"
call run -m ends.gguf -p hello
ended 'end of text' && grep -q "generation $(test "$first" = "$second" && echo 0 || echo 1) tokens" "$err"
verdict $? 'the token that ends a text is not printed'

# ---- interrupts ----------------------------------------------------------------------------------
toy long.gguf context=200000
# wait_for FILE BYTES
wait_for() {
    tries=0
    while test "$(wc -c <"$1")" -lt "$2" && test $tries -lt 300; do
        sleep 0.1
        tries=$((tries + 1))
    done
}
: >"$out"
"$tfm" run -m long.gguf -c 60000 -n -1 </dev/null >"$out" 2>"$err" &
pid=$!
wait_for "$out" 100
kill -INT $pid
wait $pid
code=$?
test $code -eq 130 && test "$(lines "$err")" -eq 1 && grep -q 'ended: interrupted' "$err" &&
    test "$(tail -c 1 "$out" | od -An -tx1 | tr -d ' ')" = 0a
verdict $? 'Ctrl-C ends the text cleanly, exit code 130'

awk 'BEGIN { for (i = 0; i < 20000; i++) printf " world" }' >"$work/worlds"
mkfifo "$work/fifo"
# holds the reading end open and reads nothing
{ exec 3<"$work/fifo"; exec sleep 600; } &
reader=$!
"$tfm" run -m long.gguf -c 100000 -n 5 -f "$work/worlds" >"$work/fifo" 2>"$err" &
pid=$!
sleep 2
kill -INT $pid
sleep 1
kill -INT $pid 2>/dev/null
(sleep 10; kill -KILL $pid 2>/dev/null) &
guard=$!
wait $pid
code=$?
kill $guard $reader
wait $reader 2>/dev/null
: >"$out"
test $code -eq 130 && test ! -s "$err"
verdict $? 'a second Ctrl-C ends a program whose reader is stuck'

# ---- failed writes -------------------------------------------------------------------------------
: >"$out"
"$tfm" run >&- 2>"$err" </dev/null
code=$?
failed_with 1 'standard output'
verdict $? 'closed standard output'
if test -c /dev/full; then
    "$tfm" run >/dev/full 2>"$err" </dev/null
    code=$?
    failed_with 1 'standard output'
    verdict $? 'full disk'
fi
{
    sleep 0.3
    "$tfm" run 2>"$err" </dev/null
    echo $? >"$work/code"
} | true
code=$(cat "$work/code")
failed_with 1 'standard output'
verdict $? 'a reader that went away'
finish
