#!/bin/sh
# SPDX-License-Identifier: MIT
# Which model is used, and models that cannot be: one line that names the file and the cure, exit code 1.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
TFM_BACKEND=reference
export TFM_BACKEND
toy "$work/toy.gguf"

# ---- where the default model is looked for -------------------------------------------------------
# Copies of the program: one stands alone, one in a folder that looks like a build tree.
program=$builddir/.libs/tfm
test -f "$program" || program=$tfm
mkdir -p "$work/alone" "$work/tree/.libs" "$work/tree/models"
cp "$program" "$work/alone/tfm" && cp "$program" "$work/tree/.libs/tfm" || exit 99
# from PROGRAM ARGUMENT...
from() {
    LD_LIBRARY_PATH=$builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@" >"$out" \
        2>"$err" </dev/null
    code=$?
}
from "$work/alone/tfm" run
failed_with 1 ./quickstart && grep -q -e '-m FILE' "$err"
verdict $? 'no model anywhere: ./quickstart or -m FILE'
mkdir models
from "$work/alone/tfm" run
failed_with 1 ./quickstart
verdict $? 'an empty models/'
cp "$work/toy.gguf" models/b.gguf
echo no model >models/a.txt
mkdir models/a.gguf
from "$work/alone/tfm" run -n 1
test $code -eq 0
verdict $? 'the one in models/ of the current folder'
echo no model >models/aa.gguf
from "$work/alone/tfm" run -n 1
failed_with 1 models/aa.gguf
verdict $? 'the first by name'
cp "$work/toy.gguf" "$work/tree/models/toy.gguf"
from "$work/tree/.libs/tfm" run -n 1
failed_with 1 models/aa.gguf
verdict $? 'a folder without config.status is no build tree'
: >"$work/tree/config.status"
from "$work/tree/.libs/tfm" run -n 1
test $code -eq 0
verdict $? 'models/ of the build tree comes first'
rm -r models

# ---- named models --------------------------------------------------------------------------------
TFM_MODEL=$work/toy.gguf
export TFM_MODEL
call run -n 1
test $code -eq 0
verdict $? 'TFM_MODEL'
call run -n 1 -m nowhere.gguf
failed_with 1 nowhere.gguf
verdict $? '-m wins over TFM_MODEL; no such file'
TFM_MODEL=nowhere.gguf
call run -n 1
failed_with 1 TFM_MODEL && grep -q nowhere.gguf "$err"
verdict $? 'TFM_MODEL that is not there is named'
unset TFM_MODEL

call run -m .
failed_with 1 '.'
verdict $? 'a folder'
: >empty.gguf
call run -m empty.gguf
failed_with 1 empty.gguf
verdict $? 'an empty file'
echo 'this is no model, but it is a text of some length' >text.gguf
call run -m text.gguf
failed_with 1 text.gguf
verdict $? 'a foreign file'
size=$(wc -c <"$work/toy.gguf")
for bytes in 10 100 5000 20000 $((size - 1)); do
    head -c "$bytes" "$work/toy.gguf" >cut.gguf
    call run -m cut.gguf
    failed_with 1 cut.gguf
    verdict $? "cut off after $bytes of $size bytes"
done
# name OLD NEW: the toy with some bytes replaced by as many others
edit() { LC_ALL=C sed "s/$2/$3/" "$work/toy.gguf" >"$1"; }
edit foreign.gguf llama lhama
call run -m foreign.gguf
failed_with 1 lhama
verdict $? 'an architecture that is not known is named'
edit pre.gguf smollm smallm
call run -m pre.gguf
failed_with 1 smallm
verdict $? 'a pre-tokenizer that is not known is named'
edit missing.gguf 'blk\.1\.ffn_up' 'blk.1.ffn_xx'
call run -m missing.gguf
failed_with 1 ffn_up
verdict $? 'a missing tensor is named'
for verb in 'tokenize -p a' 'logits -p a' 'bench' 'plan'; do
    # shellcheck disable=SC2086
    call $verb -m text.gguf
    failed_with 1 text.gguf
    verdict $? "tfm $verb: a foreign file"
done
finish
