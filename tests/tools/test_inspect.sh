#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm inspect: counts of known models, the form of what it prints, no memory for weights, and
# configurations that are wrong. Catches a parameter that is left out or counted twice, a key that is
# ignored, a message that does not name the key.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
examples=$srcdir/docs/examples
toy toy.gguf

# ---- known models --------------------------------------------------------------------------------
call inspect --config "$examples/gpt2-124m.json"
test $code -eq 0 && test ! -s "$err" && grep -q -x '124,439,808 parameters in 196 tensors, 497,759,232 bytes' "$out" &&
    grep -q '^84,934,656 of them in Linear weights = 68\.3 % (.*99\.3 % with the tied head)$' "$out"
verdict $? 'GPT-2 124M: 124,439,808 parameters, 68.3 % in Linear weights, 99.3 % with the tied head'
call inspect --json --config "$examples/gpt2-124m.json"
test "$(json parameters) $(json linear_weights) $(json linear_weights_with_tied_head)" = '124439808 84934656 123532032'
verdict $? '--json has the same counts'
test "$(json tensors.0.name) $(json tensors.0.layer) $(json tensors.0.shape) $(json tensors.0.values)" = \
    'token_embd.weight embedding [50257,768] 38597376' && test "$(json 'layers.#')" -eq 4
verdict $? '--json lists tensors and kinds of layers'
# the sum of the rows is the total
"$tfm" inspect --config "$examples/gpt2-124m.json" |
    awk '$1 == "parameter" { gsub(/,/, "", $NF); n += $NF } END { print n }' >"$work/sum"
test "$(cat "$work/sum")" -eq 124439808
verdict $? 'the rows add up'
call inspect --config "$examples/smollm2-135m.json"
test $code -eq 0 && grep -q '^134,515,008 parameters in 272 tensors' "$out" &&
    grep -q ' 188,743,680 bytes of cache in 60 states$' "$out"
verdict $? 'SmolLM2-135M: 134,515,008 parameters, a cache of 2 S G d x bytes a layer'
model=${TFM_TEST_MODEL:-}
if test -f "$model"; then
    call inspect "$model"
    test $code -eq 0 && grep -q '^134,515,008 parameters in 272 tensors' "$out" &&
        grep -q '^parameter *blk\.29\.ffn\.down\.weight *linear *\[576, 1536\] q4_1 *884,736$' "$out"
    verdict $? 'the model file has as many'
else
    verdict 0 'the model file has as many # SKIP no model file'
fi
call inspect toy.gguf
test $code -eq 0 && grep -q '^parameter *blk\.0\.attn\.q\.weight *linear ' "$out"
verdict $? 'a model file'
call inspect toy.gguf --json
test $code -eq 0 && test "$(json tensors.0.kind)" = parameter
verdict $? 'options may stand behind the file'
TFM_MODEL=$work/here/toy.gguf
export TFM_MODEL
call inspect
test $code -eq 0 && grep -q '^parameter' "$out"
verdict $? 'without a file: the model that the other verbs take'
unset TFM_MODEL

# A model of 70 G parameters: its layers are built in little memory.
cat >large.json <<'JSON'
{"vocab": 128256, "context": 8192, "width": 8192, "layers": 80, "heads": 64, "kv_heads": 8,
 "ffn_width": 28672, "rope_theta": 500000, "rope_scaling": "llama3", "rope_factor": 8,
 "rope_original_context": 8192, "dtype": "bf16", "embedding_dtype": "bf16", "head_dtype": "bf16"}
JSON
limit='ulimit -v 400000'
grep -q '^TFM_LDFLAGS.*sanitize' "$builddir/Makefile" && limit=: # they reserve address space
(eval "$limit"; "$tfm" inspect --config large.json) >"$out" 2>"$err"
code=$?
test $code -eq 0 && grep -q '^70,553,706,496 parameters in 723 tensors, 141,110,050,816 bytes$' "$out"
verdict $? 'no memory for weights'

# ---- every kind of word and number ---------------------------------------------------------------
base='"vocab": 16, "context": 8, "width": 8, "layers": 1, "heads": 2'
# config TEXT: a configuration of these keys and the base
config() { printf '{%s%s}\n' "$base" "${1:+, $1}" >c.json; call inspect --json --config c.json; }
config ''
test $code -eq 0 && test "$(json tensors.7.name) $(json tensors.7.shape)" = 'blk.0.ffn.gate.weight [64,8]'
verdict $? 'defaults: 8/3 width, rounded up to 64, with a gate'
config '"ffn": "relu"'
test $code -eq 0 && test "$(json tensors.7.name) $(json tensors.7.shape)" = 'blk.0.ffn.up.weight [32,8]'
verdict $? 'defaults: 4 width without one'
config '"norm": "layer", "ffn": "gelu", "position": "relative", "relative_buckets": 8, "relative_max_distance": 20'
test $code -eq 0 && grep -q rel_pos.rel_bias "$out" && grep -q rel_pos.rel_bucket "$out"
verdict $? 'relative positions'
config '"bidirectional": true, "position": "sinusoidal", "block": "post", "no_final_norm": true'
test $code -eq 0 && test "$(json state_bytes)" -eq 0 && grep -q pos_embd.table "$out" && ! grep -q output_norm "$out"
verdict $? 'an encoder has no cache'
config '"block": "pre_post", "qk_norm": true, "logit_softcap": 30, "head_dim": 16, "kv_heads": 1, "rope_style": "halves", "q_bias": true'
test $code -eq 0 && grep -q blk.0.attn_post_norm.weight "$out" && grep -q blk.0.attn.k_norm.weight "$out" &&
    ! grep -q output_softcap "$out" && grep -q blk.0.attn.q.bias "$out"
verdict $? 'norms on both sides, norms of q and k, a bias; a soft cap owns nothing'
printf '{"model_type": "tfm", "torch_dtype": "float16", "bos_token_id": null, "decoder": {%s, "norm": "layer"}}\n' "$base" >c.json
call inspect --json --config c.json
test $code -eq 0 && grep -q blk.0.attn_norm.bias "$out"
verdict $? 'config.json of a folder of TFM'
call inspect --config help
test $code -eq 0 && grep -q '^rope_theta ' "$out" && grep -q '"gelu_tanh"' "$out"
verdict $? '--config help lists the keys'

# ---- what is wrong -------------------------------------------------------------------------------
# wrong TEXT WORD...: one line that holds each word, exit code 1
wrong() {
    text=$1
    shift
    config "$text"
    for word; do
        failed_with 1 "$word" || { verdict 1 "$text: $word"; return; }
    done
    verdict 0 "refused: $text"
}
wrong '"widht": 8' c.json '"widht"' 'no key'
wrong '"kv_heads": "two"' '"kv_heads" is "two"' 'a whole number from 0 to 65536'
wrong '"kv_heads": -1' '"kv_heads" is -1'
wrong '"kv_heads": 1.5' '"kv_heads" is 1.5'
wrong '"eps": "small"' '"eps" is "small"' 'a number from 0 to 1'
wrong '"eps": 2' '"eps" is 2'
wrong '"tied": 1' '"tied" is 1' 'true or false'
wrong '"norm": "batch"' '"norm" is "batch"' '"rms" "layer" "none"'
wrong '"norm": null' '"norm" is null'
wrong '"dtype": "f23"' '"dtype" is "f23"' '"q4_1"'
wrong '"dtype": "q4_1"' blk.0.attn.q.weight 'blocks of 32'
wrong '"heads": 2' c.json line 'duplicate'
wrong '"kv_heads": 3' blk.0.attn 'multiple' '[N, 2, 4]' '[N, 3, 4]'
wrong '"head_dim": 5' rope 'dims is 5' even
wrong '"rope_dims": 6' blk.0.attn '[8, 3, 2]'
wrong '"rope_scaling": "llama3", "rope_factor": 8' rope 'original_context is 0'
wrong '"rope_scaling": "factors"' 'factors are missing'
wrong '"position": "relative"' rel_pos '0 buckets'
wrong '"cache_dtype": "bf16"' blk.0.attn 'f16'
printf '{"vocab": 16, "context": 8, "width": 9, "layers": 1, "heads": 2}' >c.json
call inspect --config c.json
failed_with 1 '"width" 9' && grep -q '"heads" 2' "$err" && grep -q '"head_dim"' "$err"
verdict $? 'a width that heads do not divide'

# ---- the object "train" --------------------------------------------------------------------------
must='"length": 8, "sequences": 4, "steps": 100, "rate": 0.001'
config "\"train\": {$must}"
test $code -eq 0 && test "$(json tensors.0.shape)" = '[16,8]'
verdict $? 'training beside the layers'
config "\"train\": {$must, \"accumulate\": 2, \"final_rate\": 1e-4, \"warmup\": 100, \"beta1\": 0, \"beta2\": 0.99, \"adam_eps\": 1e-9,
\"weight_decay\": 0, \"clip\": 0, \"embedding_rate\": 0.5, \"held_out\": 0, \"seed\": 0, \"compute\": \"bf16\", \"validate_every\": 10,
\"sample_every\": 20, \"save_every\": 30, \"recompute\": true}, \"cache_dtype\": \"f16\", \"dtype\": \"f32\""
test $code -eq 0
verdict $? 'every key of training'
call inspect --config help
test $code -eq 0 && grep -q '^accumulate ' "$out" && grep -q 'a number from 0 to 0.99999, default 0.95$' "$out" &&
    grep -q '^length  *(must be there)' "$out"
verdict $? '--config help lists them too'
wrong '"train": 3' '"train" is no JSON object'
wrong '"train": {}' '"train": "length" is missing'
for key in length sequences steps rate; do
    wrong "\"train\": {$(echo "$must" | sed "s/\"$key\": [0-9.]*,* *//; s/, \$//")}" "\"train\": \"$key\" is missing"
done
# training TEXT WORD...: the same inside "train"; what is in TEXT stands there instead of what must be there
training() {
    text=$1
    shift
    kept=$must
    for key in length sequences steps rate; do
        case $text in *"\"$key\":"*) kept=$(echo "$kept" | sed "s/\"$key\": [0-9.]*,* *//; s/, \$//") ;; esac
    done
    wrong "\"train\": {$kept, $text}" "$@"
}
training '"stpes": 3' '"train": there is no key "stpes"'
training '"width": 8' '"train": there is no key "width"'
training '"length": 9' '"length" is 9' '"context" is 8'
training '"length": 0' '"length" is 0' 'from 1 to'
training '"sequences": 0' '"sequences" is 0' 'from 1 to'
training '"sequences": -4' '"sequences" is -4'
training '"sequences": 2.5' '"sequences" is 2.5' 'a whole number'
training '"steps": 0' '"steps" is 0'
training '"accumulate": 0' '"accumulate" is 0'
training '"rate": -0.1' '"rate" is -0.' 'a number from'
training '"rate": 0' '"rate" is 0'
training '"rate": "NaN"' '"rate" is "NaN"' 'a number'
training '"rate": 1e999' c.json line
training '"warmup": 101' '"warmup" is 101' '"steps", 100'
training '"final_rate": 0.01' '"final_rate" is 0.01' '"rate", 0.001'
training '"beta2": 1' '"beta2" is 1' '0.99999'
training '"adam_eps": 0' '"adam_eps" is 0'
training '"held_out": 1' '"held_out" is 1' 'from 0 to 0.9'
training '"clip": -1' '"clip" is -1'
training '"compute": "f16"' '"compute" is "f16"' 'one of "f32" "bf16"'
training '"recompute": 1' '"recompute" is 1' 'true or false'
wrong "\"train\": {$must}, \"dtype\": \"f16\"" '"dtype" is "f16"' '"compute"'
wrong "\"train\": {$must}, \"bidirectional\": true" '"bidirectional"' 'predict'
printf '{"vocab": 16, "context": 16777216, "width": 8, "layers": 1, "heads": 2, "train":
    {"length": 16777216, "sequences": 200, "steps": 1, "rate": 1}}' >c.json
call inspect --config c.json
failed_with 1 '"sequences" 200 of "length" 16777216'
verdict $? 'refused: more tokens in a run than their numbers hold'

for key in vocab context width layers heads; do
    printf '{"vocab": 16, "context": 8, "width": 8, "layers": 1, "heads": 2}' | sed "s/\"$key\": [0-9]*,* *//; s/, }/}/" >c.json
    call inspect --config c.json
    failed_with 1 "\"$key\" is missing"
    verdict $? "without $key"
done
echo '{"vocab": 16,' >c.json
call inspect --config c.json
failed_with 1 'c.json: line'
verdict $? 'no JSON: line and column'
echo '{"model_type": "tfm"}' >c.json
call inspect --config c.json
failed_with 1 '"decoder" is missing'
verdict $? 'a folder without its decoder'
echo '[1]' >c.json
call inspect --config c.json
failed_with 1 'no JSON object'
verdict $? 'no object'
: >c.json
call inspect --config c.json
failed_with 1 c.json
verdict $? 'an empty file'
call inspect --config nowhere.json
failed_with 1 nowhere.json
verdict $? 'no such file'
call inspect nowhere.gguf
failed_with 1 nowhere.gguf
verdict $? 'no such model'
call inspect --config "$examples/gpt2-124m.json" toy.gguf
failed_with 2 'one of them'
verdict $? 'a file and a configuration'
call inspect toy.gguf other.gguf
failed_with 2 other.gguf
verdict $? 'two files'
finish
