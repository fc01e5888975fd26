#!/bin/sh
# SPDX-License-Identifier: MIT
# A model that is no Llama, as whoever trained it uses it: tfm run, perplexity, inspect, convert and train --init take the
# folder that tfm train left. Catches a verb that takes folders of Llamas only, and a start from other values than were
# learnt. Logits: tests/llm/test_own_model.c.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
TFM_BACKEND=reference
export TFM_BACKEND
awk 'BEGIN { for (i = 0; i < 900; i++) printf "The cat sees the %s. The dog %s the cat.\n", i % 3 ? "dog" : "child", i % 2 ? "hears" : "sees" }' >text.txt
for kind in post t5; do
    sed -e 's/"vocab": 290/"vocab": 280/' -e 's/"rate": 0.003/"rate": 0.01/' -e 's/"steps": 20/"steps": 40/' \
        "$srcdir/tests/train/data/$kind.json" >$kind.json
    call train --data text.txt --config $kind.json --out $kind
    last=$(sed -n 's/^validation after step 40  loss \([0-9.]*\).*/\1/p' "$out")
    test $code -eq 0 && grep -q "^tfm train: $kind/model: no GGUF file: " "$err" && test ! -e $kind/model.gguf
    verdict $? "$kind: a folder, and why there is no GGUF file"
    call run -m $kind/model -p 'The cat' -n 8 --temp 0
    test $code -eq 0 && grep -q '^The cat' "$out"
    verdict $? "$kind: tfm run takes it"
    call perplexity -m $kind/model -f text.txt
    p=$(sed -n 's/.*perplexity[^0-9]*\([0-9.]*\).*/\1/p' "$out" | head -n 1)
    test $code -eq 0 && awk -v p="${p:-0}" -v l="$last" 'BEGIN { exit !(p > 1 && p < 1.5 * exp(l)) }'
    verdict $? "$kind: tfm perplexity ${p:-none}, after a validation loss of $last"
    call inspect $kind/model
    test $code -eq 0 && grep -q 'parameters in' "$out" && cp "$out" of-folder && call inspect --config $kind.json &&
        test "$(grep -c '^parameter' of-folder)" -eq "$(grep -c '^parameter' "$out")"
    verdict $? "$kind: tfm inspect has the parameters of the configuration"
    echo '{"train": {"length": 32, "sequences": 4, "steps": 2, "rate": 1e-4}}' >tune.json
    call train --init $kind/model --data text.txt --config tune.json --out tuned-$kind
    first=$(sed -n 's/^step 1\/2  loss \([0-9.]*\).*/\1/p' "$out")
    test $code -eq 0 && awk -v a="${first:-99}" -v b="$last" 'BEGIN { exit !(a < b + 0.3) }' && test -f tuned-$kind/model/config.json
    verdict $? "$kind: tfm train --init begins with what it has learnt: loss ${first:-none}"
    call convert -m $kind/model --type f16 --out $kind-f16
    test $code -eq 0 && call run -m $kind-f16 -p 'The cat' -n 8 --temp 0 && test $code -eq 0 && grep -q '^The cat' "$out"
    verdict $? "$kind: tfm convert makes a smaller folder"
done
call convert -m post/model --out post.gguf
failed_with 1 '"norm" is "layer"' && test ! -e post.gguf
verdict $? 'a GGUF file is refused, and the message says why'
mkdir broken && cp post/model/* broken
rm broken/model.safetensors
call run -m broken -p a
failed_with 1 'broken/model.safetensors'
verdict $? 'a folder without tensors'
cp post/model/model.safetensors broken
sed 's/"norm": "layer"/"norms": "layer"/' post/model/config.json >broken/config.json
call run -m broken -p a
failed_with 1 'broken/config.json: there is no key "norms"'
verdict $? 'a key that nobody knows'
finish
