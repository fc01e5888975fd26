#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm tune on a toy model: what it prints and writes, that the file is read when the device is opened, and that one
# of another device, driver or version, or a broken one, is ignored with one line. Catches a choice that nobody
# applies, half-read files, files written by a dry run.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
"$tfm" backends >"$out" 2>"$err"
grep -q '^opencl' "$out" || { echo 'the opencl backend is not there'; exit 77; }
TFM_BACKEND='opencl:Portable Computing Language' TFM_THREADS=2 TFM_MODEL=$work/here/toy.gguf XDG_DATA_HOME=$work/data
export TFM_BACKEND TFM_THREADS TFM_MODEL XDG_DATA_HOME
unset TFM_OPENCL_TUNE TFM_OPENCL_GEMM
toy toy.gguf

# area NAME: the lines of what was tuned under that name
area() { sed -n "/^$1: /,/^  best: /p" "$out"; }
# how many ways were tried; "again" ends otherwise. Times of a toy may be lost in the noise: then there is one
ways() { area "$1" | grep -c '^  .*\( ms\|does not count: .*\)$'; }
tried() { test "$(ways "$1")" -eq "$2" || area "$1" | grep -q '^  best: as shipped; its time could not be measured'; }
call_with TFM_ACT=auto tune -b 64 -r 1 --dry-run
test $code -eq 0 && test "$(grep -c '^  as shipped  *\([0-9.]* ms\|does not count: its time.*\)$' "$out")" -eq 6 && grep -q '^chosen: ' "$out" &&
    test "$(grep -c '^  best: ' "$out")" -eq 6 && test ! -e "$work/data"
verdict $? '--dry-run: six choices, what is best for each, no file'
tried 'shape of the kernels' 2 && tried 'parts of a launch' 4 && tried activations 3 && tried 'persistent kernel' 2 &&
    tried 'splits of a context' 4 && tried 'GEMM of many rows' 5
verdict $? 'a line a way'
call tune -b 64 -r 1
file=$(sed -n 's/^written: //p' "$out")
test $code -eq 0 && test -f "$file" && grep -q -x 'version = 1' "$file" && grep -q '^device = .' "$file" &&
    grep -q '^driver = .' "$file" && ! grep -v -q '^[A-Za-z.]* = .' "$file" &&
    test "$(find "$work/data" -type f)" = "$file" && case $file in "$work/data/tfm/tune/opencl-"*.conf) true ;; *) false ;; esac
verdict $? 'key = value lines in a file that names the device'
head -n 3 "$file" >"$work/head"

# with LINES...: a run with that file; the messages are in $err
with() {
    { cat "$work/head"; printf '%s\n' "$@"; } >"$file"
    call logits --ids 1,2,3 -v
}
reason() { grep -q "GEMM of many rows: $1" "$err"; }
ignored() { # REASON
    test $code -eq 0 && test "$(grep -c "tune file $file is ignored: $1" "$err")" -eq 1 &&
        reason 'our own kernel, because the device is a CPU'
}
with '# nothing' ''
test $code -eq 0 && ! grep -q 'is ignored' "$err" && reason 'our own kernel, because the device is a CPU'
verdict $? 'a file that chooses nothing'
with 'gemm = clblast'
test $code -eq 0 && ! grep -q 'is ignored' "$err" && reason 'CLBlast, because tfm tune measured it'
verdict $? 'what the file says is done, and -v says why'
TFM_OPENCL_GEMM=own
export TFM_OPENCL_GEMM
call logits --ids 1,2,3 -v
reason 'our own kernel, because TFM_OPENCL_GEMM says so'
verdict $? 'the variable decides before the file'
call_with TFM_OPENCL_SHAPE=wide tune -b 64 -r 1 --dry-run
test $code -eq 0 && grep -q '^GEMM of many rows: not tuned, TFM_OPENCL_GEMM is set and decides$' "$out" &&
    grep -q '^shape of the kernels: not tuned, TFM_OPENCL_SHAPE is set' "$out" &&
    test "$(grep -c '^  best: ' "$out")" -eq 3 # TFM_ACT is set too
verdict $? 'tune with variables set: what they decide is left out, and said'
unset TFM_OPENCL_GEMM
call_with TFM_OPENCL_TUNE=off logits --ids 1,2,3 -v
reason 'our own kernel, because the device is a CPU' && ! grep -q 'is ignored' "$err"
verdict $? 'TFM_OPENCL_TUNE=off'

# told KEY = VALUE...|TEXT: a file is followed, and -v says so
while IFS='|' read -r lines text; do
    with "$(echo "$lines" | tr ';' '\n')"
    test $code -eq 0 && ! grep -q 'is ignored' "$err" && grep -q "$text, because tfm tune measured it" "$err"
    verdict $? "followed: $lines"
done <<END
shape = group;group = 8|shape of the kernels: group, up to 8 work-items
persistent = off|persistent kernel: off
parts = 2|parts of a launch: 4
attention.few = 32|splits of a context: 256 cells, 32 of few rows
attention.split = 64|splits of a context: 64 cells, 64 of few rows
END
with 'attention.few = 32' 'attention.split = 64' 'parts = 1'
for n in 1 2; do call_with TFM_THREADS=$n logits --ids 1,2,3,4,5,6,7,8,9,10,11 -o "bits.$n.npy"; done
cmp bits.1.npy bits.2.npy
verdict $? 'one file, one device: the same bits with one thread and with two'
TFM_ACT=auto
export TFM_ACT
with 'act = f32'
grep -q 'activations: f32, because tfm tune measured it' "$err" && with 'act = int8' &&
    grep -q 'activations: 8 bits, by .*, because tfm tune measured it' "$err"
verdict $? 'followed: act = f32, act = int8'
call_with TFM_ACT=f32 logits --ids 1,2,3 -v
grep -q 'activations: f32, because TFM_ACT says so' "$err"
verdict $? 'TFM_ACT decides before the file'
TFM_ACT=f32
with 'gemm = clblast'
cp "$file" elsewhere.conf
rm "$file"
call_with "TFM_OPENCL_TUNE=$work/here/elsewhere.conf" logits --ids 1,2,3 -v
reason 'CLBlast, because tfm tune measured it'
verdict $? 'TFM_OPENCL_TUNE=FILE'
call_with TFM_OPENCL_TUNE=/nowhere.conf logits --ids 1,2,3
test $code -eq 0 && test "$(grep -c 'tune file /nowhere.conf is ignored: No such file' "$err")" -eq 1
verdict $? 'a named file that is not there: one line'

for bad in 'gemm = best|gemm is own or clblast' 'shape = broad|shape is wide or group' 'parts = 0|parts is a multiple of 1 from 1 to 64' \
    'group = 6|group is a multiple of 4' 'attention.few = 4096|attention.few is a multiple of 16' 'parts = 2x|parts is a multiple' \
    'speed = 1|there is no key' 'gemm clblast|no .key = value.' \
    'xgemm.KWG = 16|parameters of CLBlast are missing' 'xgemm.NAME = 1|.*has no parameter' 'xgemm.KWG = x|.*no number' \
    'xgemm.KWG = 99999|.*no number' 'version = 2|it is of version' 'device = another|it is of the device' \
    'driver = 0|it is of the driver'; do
    with "${bad%%|*}"
    ignored "${bad#*|}"
    verdict $? "ignored with one line: ${bad%%|*}"
done
with 'gemm = clblast' 'gemm = own'
ignored 'twice the key .gemm'
verdict $? 'ignored with one line: a key twice'
: >"$file"
call logits --ids 1,2,3 -v
ignored 'it does not say for what it is'
verdict $? 'an empty file'
head -c 20000 /dev/zero >"$file"
call logits --ids 1,2,3 -v
ignored 'it is no text'
verdict $? 'no text'
call_with TFM_BACKEND=reference tune
failed_with 1 'nothing to tune'
verdict $? 'a backend without choices'
finish
