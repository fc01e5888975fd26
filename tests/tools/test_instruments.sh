#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm tokenize, logits, bench and plan on a toy model: the form of what they print. Catches output that
# scripts cannot read, wrong order, ids that reach a kernel unchecked, files half-written.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
toy toy.gguf
toy quantized.gguf quantized
TFM_BACKEND=reference TFM_MODEL=$work/here/toy.gguf
export TFM_BACKEND TFM_MODEL
tab=$(printf '\t')

# ---- tokenize ------------------------------------------------------------------------------------
# The toy's ids: a byte is its own id, merges follow from 256 on, 289..291 are control tokens.
tokens() { test $code -eq 0 && test ! -s "$err" && printf '%s\n' "$1" | cmp -s - "$out"; }
call tokenize -p 'ab'
tokens '97 98'
verdict $? 'ids on one line'
call tokenize -p ''
tokens ''
verdict $? 'no text: an empty line'
call tokenize -p 'a<|im_end|>b'
tokens '97 291 98'
verdict $? 'control tokens are recognized'
call tokenize -p '<|x' --no-special
tokens '60 124 120'
verdict $? '--no-special'
call tokenize -p '<|im_end|>' --no-special
test $code -eq 0 && ! grep -q 291 "$out"
verdict $? '--no-special: control tokens are text'
printf 'a\n\0b\n' >"$work/bytes"
call tokenize -f "$work/bytes"
tokens '97 10 0 98 10'
verdict $? '-f takes every byte, NUL too'
"$tfm" tokenize -f - <"$work/bytes" >"$out" 2>"$err"
code=$?
tokens '97 10 0 98 10'
verdict $? '-f - is standard input'
call tokenize -p 'hello 😀"' --text
test $code -eq 0 && printf '284\t"hello"\n32\t" "\n240\t"\357\277\275"\n159\t"\357\277\275"\n152\t"\357\277\275"\n128\t"\357\277\275"\n34\t"\\""\n' |
    cmp -s - "$out"
verdict $? '--text: id, tab, JSON string; parts of characters become U+FFFD'
call tokenize -p x --backend nowhere --kv f32 --plugin nowhere.so
tokens '120'
verdict $? 'the common options are accepted'
printf '\303(' >"$work/latin1"
call tokenize -f "$work/latin1"
failed_with 1 UTF-8
verdict $? 'no UTF-8'

# ---- logits --------------------------------------------------------------------------------------
call logits -p hello
test $code -eq 0 && test ! -s "$err" && test "$(lines "$out")" -eq 10 &&
    ! grep -v -q -E "^[0-9]+$tab\"([^\"\\]|\\\\.)+\"$tab-?[0-9]+\.[0-9]{6}\$" "$out"
verdict $? 'ten lines: id, tab, JSON string, tab, logit with 6 decimals'
cut -f 3 "$out" >"$work/column"
sort -g -r "$work/column" | cmp -s - "$work/column"
verdict $? 'best first'
cp "$out" "$work/hello"
call logits --ids 284
cmp -s "$out" "$work/hello"
verdict $? '--ids gives what the text gives'
call logits --ids 284 -b 1 --kv f32 -c 16
test $code -eq 0 && test "$(head -n 1 "$out" | cut -f 1)" = "$(head -n 1 "$work/hello" | cut -f 1)"
verdict $? 'the common options'
call logits --ids 284 --top 1000 -o all.npy
test $code -eq 0 && test "$(lines "$out")" -eq 292 && cut -f 1 "$out" | sort -n -u | wc -l | grep -q 292
verdict $? '--top beyond the vocabulary prints every token once'
# 128 bytes of head, then 292 floats
head -c 128 all.npy >"$work/head"
test "$(wc -c <all.npy)" -eq $((128 + 4 * 292)) &&
    head -c 8 all.npy | od -An -tx1 | grep -q '93 4e 55 4d 50 59 01 00' &&
    grep -a -q "{'descr': '<f4', 'fortran_order': False, 'shape': (292,), } *\$" "$work/head"
verdict $? 'the head of the .npy file'
sort -n "$out" | cut -f 3 >"$work/printed"
tail -c +129 all.npy | od -An -v -tf4 -w4 >"$work/stored"
paste "$work/printed" "$work/stored" |
    awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5) bad = 1 } END { exit bad || NR != 292 }'
verdict $? 'the .npy file holds the logits in the order of the ids'
for ids in -1 292 284,292 2147483647 99999999999 -2147483648; do
    call logits --ids "$ids"
    failed_with 1 "${ids##*,}"
    verdict $? "--ids $ids: out of range"
done
call logits -p ''
failed_with 1 empty
verdict $? 'nothing to predict from'
call logits -p abcdefghij -c 8
failed_with 1 10 && grep -q 8 "$err"
verdict $? 'longer than the context: both counts'

# ---- files that cannot be written ----------------------------------------------------------------
nothing_left() { test -z "$(find . "$work/folder" -name '*tfm-*' -o -name x.npy)"; }
mkdir "$work/folder"
call logits --ids 1 -o nowhere/x.npy
failed_with 1 nowhere/x.npy && nothing_left
verdict $? '-o into a folder that is not there'
call logits --ids 1 -o .
failed_with 1 folder && nothing_left
verdict $? '-o FOLDER'
if test "$(id -u)" -ne 0; then
    chmod a-w "$work/folder"
    call logits --ids 1 -o "$work/folder/x.npy"
    chmod u+w "$work/folder"
else
    call logits --ids 1 -o /proc/x.npy
fi
failed_with 1 x.npy && nothing_left
verdict $? '-o into an unwritable folder'
if test -c /dev/full; then
    call logits --ids 1 -o /dev/full
    failed_with 1 /dev/full && test -c /dev/full
    verdict $? '-o: full disk'
fi
cp all.npy "$work/folder/old.npy"
(
    ulimit -f 1
    trap '' XFSZ
    "$tfm" logits --ids 1 -o "$work/folder/old.npy" 2>"$err" </dev/null | cat >"$out"
)
code=1
failed_with 1 old.npy && cmp -s all.npy "$work/folder/old.npy" && nothing_left
verdict $? '-o that fails half-way leaves the old file'
ln -s "$work/folder/old.npy" link.npy
call logits --ids 1 -o link.npy
test $code -eq 0 && test -h link.npy && ! cmp -s all.npy "$work/folder/old.npy"
verdict $? '-o through a symbolic link'

# ---- bench ---------------------------------------------------------------------------------------
call bench -p 20 -n 5 -r 2
test $code -eq 0 && test ! -s "$err" && test "$(lines "$out")" -eq 4 &&
    grep -q '^| toy.gguf | reference | .* | pp20 | [0-9.]* ± [0-9.]* | [0-9.]* | [0-9.]* .. [0-9.]* | 0.0% |' "$out" &&
    grep -q '^| toy.gguf | reference | .* | tg5 |' "$out"
verdict $? 'bench: a table with a line a measurement'
call bench -n 0 -r 1 -o json
test $code -eq 0 && test "$(json 0.n_prompt)" -eq 256
verdict $? 'bench: the default prompt is no longer than what the model was trained for'
call bench -n 0 -r 1 -d 200 -o json
test $code -eq 0 && test "$(json 0.n_prompt)" -eq 56
verdict $? 'bench: nor than what -d leaves of it'
call bench -p 257 -n 0 -r 1
failed_with 1 257
verdict $? 'bench: a length that was asked for is not changed'
call bench -p 20 -n 5 -r 3 -o json
test $code -eq 0 && test "$(json '#')" -eq 2 && test "$(json 0.n_prompt)" -eq 20 &&
    test "$(json 0.n_gen)" -eq 0 && test "$(json 1.n_prompt)" -eq 0 && test "$(json 1.n_gen)" -eq 5 &&
    test "$(json 0.backend)" = reference && json 0.device >/dev/null && json 0.stddev_ts >/dev/null &&
    test "$(json 0.fallback)" = 0.0 && json 0.avg_ts | awk '{ exit !($1 > 0) }' &&
    json 1.avg_ts | awk '{ exit !($1 > 0) }'
verdict $? 'bench -o json: a list of objects'
call bench -p 0 -n 5 -r 1 -o json
test "$(json '#')" -eq 1 && test "$(json 0.n_gen)" -eq 5 && test "$(json 0.stddev_ts)" = 0.0
verdict $? 'bench -p 0 leaves the prompt out'
call bench -p 5 -n 0 -r 1 -o json
test "$(json '#')" -eq 1 && test "$(json 0.n_prompt)" -eq 5
verdict $? 'bench -n 0 leaves generation out'
call bench -p 6 -n 4 -d 9 -s 3 -b 4 -r 3 --json
test $code -eq 0 && test "$(json 0.n_depth)" -eq 9 && test "$(json 1.n_sequences)" -eq 3 &&
    test "$(json '1.samples_ts.#')" -eq 3 && test "$(json 1.median_ts)" = "$(json 1.samples_ts.1)" &&
    test "$(json 1.min_ts)" = "$(json 1.samples_ts.0)" && test "$(json 1.max_ts)" = "$(json 1.samples_ts.2)" &&
    echo "$(json 1.min_ts) $(json 1.avg_ts) $(json 1.max_ts)" | awk '{ exit !($1 <= $2 && $2 <= $3) }'
verdict $? 'bench -d -s: behind a context, several sequences; median and spread are of the samples'
call bench -p 0 -n 2 -d 5 -s 2 -r 1
test $code -eq 0 && grep -q '| tg2 @ d5 x 2 |' "$out"
verdict $? 'bench: depth and sequences stand in the name of the test'
call bench -p 0 -n 2 -d 255 -r 1
failed_with 1 257
verdict $? 'bench -d: more tokens than the model knows positions'
call bench -p 300 -n 0 -r 1
failed_with 1 300
verdict $? 'bench: more tokens than the model knows positions'

# ---- plan ----------------------------------------------------------------------------------------
call plan -m quantized.gguf
test $code -eq 0 && test ! -s "$err" &&
    grep -q 'linear .*blk\.1\.ffn\.gate .*\[N, 64\] f32, \[128, 64\] q4_1 -> \[N, 128\] f32' "$out" &&
    grep -q '\[R, 64\] f32.*-> \[R, 292\] f32' "$out" && grep -q '^segment 0: reference' "$out" &&
    grep -q '^arena [0-9]* bytes, cache [0-9]* bytes' "$out"
verdict $? 'plan: a line a node, segments, bytes'
call plan -o json -c 32 --kv f32
nodes=$(json 'nodes.#')
# 2 layers x K and V x 32 cells x 2 heads x 16 x 4 bytes
test $code -eq 0 && test "$nodes" -gt 20 && test "$(json segments.0.last_node)" -eq $((nodes - 1)) &&
    test "$(json nodes.0.op)" = embedding && test "$(json nodes.0.outputs.0.shape.0)" = N &&
    test "$(json nodes.0.outputs.0.shape.1)" -eq 64 && test "$(json nodes.0.backend)" = reference &&
    test "$(json nodes.1.layer)" = blk.0.attn_norm && test "$(json nodes.1.refusal)" = '' &&
    test "$(json fallbacks)" -eq 0 && test "$(json cache_bytes)" -eq $((2 * 2 * 32 * 2 * 16 * 4))
verdict $? 'plan -o json'
call plan -o dot
test $code -eq 0 && grep -q '^digraph plan {' "$out" && test "$(grep -c '\[label="[a-z_]*\\n' "$out")" -eq "$nodes" &&
    test "$(grep -c -e '->' "$out")" -ge $((nodes - 1)) && test "$(tail -n 1 "$out")" = '}' &&
    awk '{ n += gsub("{", "") - gsub("}", "") } END { exit n != 0 }' "$out"
verdict $? 'plan -o dot: a box a node, an edge an input'
finish
