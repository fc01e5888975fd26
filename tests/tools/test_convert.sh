#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm convert: a toy model as a folder and back, in every type, run from each; what cannot be done is told in one line and
# leaves what was there.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
TFM_BACKEND=reference
export TFM_BACKEND
toy "$work/toy.gguf"
call run -m "$work/toy.gguf" -p 'Hello world' -n 12 --kv f32
cp "$out" "$work/want"

call convert -m "$work/toy.gguf" --out folder
test $code -eq 0 && test ! -s "$out" && test ! -s "$err" &&
    test "$(ls -A folder | tr '\n' ' ')" = 'config.json model.safetensors tokenizer.json '
verdict $? 'a GGUF file becomes a folder'
call run -m folder -p 'Hello world' -n 12 --kv f32
test $code -eq 0 && cmp -s "$out" "$work/want"
verdict $? 'tfm run -m FOLDER writes the same text'
call tokenize -m folder -p '<|im_end|> In 2024'
cp "$out" "$work/ids"
call tokenize -m "$work/toy.gguf" -p '<|im_end|> In 2024'
cmp -s "$out" "$work/ids"
verdict $? 'the same ids'
call inspect folder
test $code -eq 0 && grep -q 'attn.q.weight' "$out"
verdict $? 'tfm inspect FOLDER'
for type in f32 f16 bf16 q8_0 q4_0 q4_1; do
    call convert -m folder --out "$type.gguf" --type "$type"
    test $code -eq 0 && call run -m "$type.gguf" -p 'Hello world' -n 12 --kv f32 && test $code -eq 0
    verdict $? "a GGUF file of $type runs"
done
call run -m f32.gguf -p 'Hello world' -n 12 --kv f32
cmp -s "$out" "$work/want"
verdict $? 'there and back: the same text'
call convert -m folder --out again.gguf
cmp -s f32.gguf again.gguf
verdict $? 'once more: the same bytes'
call convert -m q8_0.gguf --out folder16 --type bf16
test $code -eq 0 && call run -m folder16 -n 1 && test $code -eq 0
verdict $? 'a quantized file becomes a folder of bf16'

# ---- what cannot be done ----
rm -r ./*.gguf folder16
echo text >file
while IFS='|' read -r status words arguments; do
    echo old >old.gguf
    # shellcheck disable=SC2086
    call convert $arguments
    failed_with "$status" "$words" && test "$(cat old.gguf)" = old &&
        test "$(ls -A | tr '\n' ' ')" = 'file folder old.gguf '
    verdict $? "convert $arguments: $words"
done <<END
2|-m FILE|--out old.gguf
2|--out FILE|-m folder
2|'q5_0' is not one of|-m folder --out old.gguf --type q5_0
1|safetensors of q8_0|-m folder --out new --type q8_0
1|nowhere|-m nowhere --out old.gguf
1|file|-m file --out old.gguf
1|file|-m folder --out file
1|nowhere/new.gguf|-m folder --out nowhere/new.gguf
1|nowhere/new|-m folder --out nowhere/new
END
(
    trap '' XFSZ
    ulimit -f 100
    call convert -m folder --out old.gguf
    failed_with 1 old.gguf
)
test $? -eq 0 && test "$(cat old.gguf)" = old && test "$(ls -A | tr '\n' ' ')" = 'file folder old.gguf '
verdict $? 'a disk that fills up: the old file stays, nothing is beside it'
finish
