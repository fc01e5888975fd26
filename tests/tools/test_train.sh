#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm train on the reference: what it writes and prints, that it learns, fine-tuning, and what is refused without
# touching what is there. Resuming, kills and full disks: tests/train/test_resume.sh.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
TFM_BACKEND=reference
export TFM_BACKEND
tiny=$srcdir/tests/train/data/tiny.json
# a text that is easy to learn: sentences of a small grammar
awk 'BEGIN {
    n = split("cat dog bird fish child", noun); m = split("sees hears follows finds", verb)
    for (i = 0; i < 2600; i++) {
        x = (x * 1103515245 + 12345) % 2147483648
        printf "The %s %s the %s%s", noun[int(x / 7) % n + 1], verb[int(x / 41) % m + 1], noun[int(x / 97) % n + 1],
            i % 5 == 4 ? ".\n" : ". "
    }
}' >text.txt
# smaller, so that the reference is quick: the keys in the order of tiny.json
sed -e 's/"vocab": 512/"vocab": 290/' -e 's/"steps": 60/"steps": 12/' -e 's/"warmup": 10/"warmup": 2/' \
    -e 's/_every": 30/_every": 6/' -e 's/"width": 64/"width": 32/' -e 's/"ffn_width": 192/"ffn_width": 64/' \
    -e 's/"rate": 3e-3/"rate": 1e-2/' -e 's/"length": 64/"length": 32/' "$tiny" >small.json

call train --data text.txt --config small.json --out run
test $code -eq 0 && test "$(grep -c '^step [0-9]*/12  loss [0-9.]*  rate [0-9.e-]*  norm [0-9.]*\( (clipped)\)\{0,1\}  [0-9]* tok/s  [0-9]* ms$' "$out")" -eq 12
verdict $? 'a line a step: loss, rate, norm, tok/s, ms'
# 32 x 290 and 32 elements of embedding and last norm, in each of 2 blocks 9280; 16 bytes each, 4 times F32
grep -q '^tfm train: 27872 parameters, [0-9]* windows of 32 tokens to train on, [0-9]* for validation$' "$err" &&
    grep -q '^tfm train: reference: host: [0-9]* nodes, 0 of them on another device; [0-9]*\.[1-9] MB of activations, 0\.[4-9] MB of parameters, gradients and moments$' "$err"
verdict $? 'what it will need, before it begins'
test "$(grep -c '^validation after step \(6\|12\)  loss' "$out")" -eq 2 && test "$(grep -c '^sample after step' "$out")" -eq 2
verdict $? 'validation and sample texts when the configuration says so'
test "$(ls -A run | tr '\n' ' ')" = 'curve.svg data.tokens last.ckpt metrics.jsonl model.gguf tokenizer.gguf '
verdict $? 'the files of a run, and no temporary one'
first=$(sed -n 's/^step 1\/12  loss \([0-9.]*\).*/\1/p' "$out")
last=$(sed -n 's/^validation after step 12  loss \([0-9.]*\).*/\1/p' "$out")
# at first about ln 290 = 5.67
awk -v a="$first" -v b="$last" 'BEGIN { exit !(a > 5.5 && a < 5.95 && b < a - 1.5) }'
verdict $? "it learns: loss $first, then $last on text that it has not seen"
lines=0
while read -r line; do
    lines=$((lines + 1))
    echo "$line" >line
    key() { "$builddir/tests/tools/json_get" "$1" <line; }
    test "$(key step) $(key tokens) $(key backend) $(key device) $(key fallback)" = "$lines $((lines * 128)) reference host 0.0" &&
        for name in loss rate norm tok_s ms; do key $name >key || break; done && test -s key || { lines=-1; break; }
done <run/metrics.jsonl
test $lines -eq 12
verdict $? 'metrics.jsonl has a JSON object a step'
grep -q '<svg' run/curve.svg && grep -q validation run/curve.svg
verdict $? 'curve.svg has both losses'
call run -m run/model.gguf -p 'The cat' -n 8
test $code -eq 0 && grep -q '^The cat' "$out"
verdict $? 'tfm run takes the model'

# ---- the curve before the end ----
sed 's/"steps": 12/"steps": 3000/' small.json >long-run.json
"$tfm" train --data text.txt --config long-run.json --out asked >"$out" 2>"$err" </dev/null &
process=$!
# within FILE LINES: it has so many lines, at last
within() {
    for tenth in $(seq 600); do
        test -f "$1" && test "$(lines "$1")" -ge "$2" && return 0
        sleep 0.1
    done
    return 1
}
within asked/metrics.jsonl 3 && test ! -e asked/curve.svg && kill -USR1 $process && within asked/curve.svg 5 &&
    within asked/metrics.jsonl $(($(lines asked/metrics.jsonl) + 2))
code=$?
kill -9 $process
wait $process 2>/dev/null
test $code -eq 0 && grep -q '</svg>' asked/curve.svg && grep -q 'class="line c0"' asked/curve.svg
verdict $? 'SIGUSR1: the curve up to now, and training goes on'

call train --data text.txt --config small.json --out run
failed_with 1 '--resume'
verdict $? 'a folder with a training is not begun again'
call train --data run/data.tokens --tokenizer run/tokenizer.gguf --config small.json --out twin
test $code -eq 0 && cmp -s run/last.ckpt twin/last.ckpt && cmp -s run/model.gguf twin/model.gguf
verdict $? 'from its token file, in another folder: the same checkpoint and model, byte for byte'

mkdir texts
head -n 300 text.txt >texts/a.txt
tail -n +301 text.txt >texts/b.txt
echo 'not this one' >texts/c.md
call train --data texts --tokenizer run/tokenizer.gguf --config small.json --out folder-run --steps 1
test $code -eq 0 && test "$(wc -c <folder-run/data.tokens)" -gt "$(wc -c <run/data.tokens)"
verdict $? 'a folder of texts, each with its begin and end'
call train --data run/data.tokens --tokenizer run/tokenizer.gguf --config small.json --out again --recompute
test $code -eq 0 && cmp -s run/last.ckpt again/last.ckpt
verdict $? '--recompute: the same checkpoint'
sed 's/"eps"/"norm": "layer", "eps"/' small.json >layer.json
call train --data run/data.tokens --tokenizer run/tokenizer.gguf --config layer.json --out layer --steps 1
test $code -eq 0 && grep -q 'layer/model: no GGUF file: .*"norm" is "layer"' "$err" && test ! -e layer/model.gguf &&
    test "$(ls -A layer/model | tr '\n' ' ')" = 'config.json model.safetensors tokenizer.json '
verdict $? 'layers that are no Llama: a folder, and why no GGUF file'

# ---- from a model ----
cat >tune.json <<'END'
{"train": {"length": 32, "sequences": 4, "steps": 2, "rate": 1e-4}}
END
for from in run/model.gguf folder; do
    test $from = folder && call convert -m run/model.gguf --out folder
    call train --init $from --data text.txt --config tune.json --out "tuned-${from%%/*}"
    loss=$(sed -n 's/^step 1\/2  loss \([0-9.]*\).*/\1/p' "$out")
    test $code -eq 0 && awk -v a="${loss:-99}" -v b="$last" 'BEGIN { exit !(a < b + 0.3) }'
    verdict $? "--init $from begins with what it has learnt: loss ${loss:-none}"
done

# ---- what cannot be done ----
echo '{' >broken.json
sed 's/"length": 32/"length": 640/' small.json >long.json
sed 's/"heads": 4/"heads": 5/' small.json >heads.json
sed 's/"vocab": 290/"vocab": 291/' small.json >vocab.json
sed 's/"position"//; s/"tied": true/"bidirectional": true/' small.json >both.json
# what no machine holds: 1e13 parameters; the tokens of a run
sed -e 's/"width": 32/"width": 1048576/' -e 's/"heads": 4/"heads": 1024/' -e 's/"kv_heads": 2/"kv_heads": 1024/' small.json >large.json
sed -e 's/"width": 32/"width": 1024/' -e 's/"layers": 2/"layers": 64/' -e 's/"sequences": 4/"sequences": 1048576/' small.json >rows.json
: >empty.txt
echo 'Too little.' >little.txt
mkdir none
before=$(ls -A | tr '\n' ' ')
while IFS='|' read -r status words arguments; do
    # shellcheck disable=SC2086
    call train $arguments
    failed_with "$status" "$words" && test ! -e new/last.ckpt
    verdict $? "$arguments: $words"
    rm -rf new
done <<END
2|--data FILE|--config small.json --out new
2|--config FILE|--data text.txt --out new
2|--out FOLDER|--data text.txt --config small.json
1|nowhere|--data nowhere --config small.json --out new
1|no *.txt|--data none --config small.json --out new
1|empty.txt|--data empty.txt --config small.json --out new
1|little.txt|--data little.txt --config small.json --out new
1|more text|--data little.txt --config small.json --tokenizer run/tokenizer.gguf --out new
1|broken.json|--data text.txt --config broken.json --out new
1|length|--data text.txt --config long.json --out new
1|heads|--data text.txt --config heads.json --out new
1|bidirectional|--data text.txt --config both.json --out new
1|parameters take 16 bytes each, this machine has |--data text.txt --config large.json --out new
1|a run of 33554432 tokens does not fit the |--data text.txt --config rows.json --out new
1|vocab|--data text.txt --config vocab.json --tokenizer run/tokenizer.gguf --out new
1|nowhere.gguf|--data text.txt --config small.json --tokenizer nowhere.gguf --out new
1|nowhere.gguf|--data text.txt --config tune.json --init nowhere.gguf --out new
1|text.txt|--data text.txt --config small.json --out text.txt
END
test "$(ls -A | tr '\n' ' ')" = "$before"
verdict $? 'none of them left anything behind'
finish
