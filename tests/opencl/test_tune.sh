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

call tune -b 64 -r 1 --dry-run
test $code -eq 0 && grep -q '^as shipped  *[0-9.]* ms$' "$out" && grep -q '^our own kernel  *[0-9.]* ms$' "$out" &&
    test "$(grep -c '^CLBlast, .*\( ms\|does not count: .*\)$' "$out")" -eq 3 && grep -q '^best: ' "$out" && test ! -e "$work/data"
verdict $? '--dry-run: a line a way, the best one, no file'
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
call tune -b 64 -r 1 --dry-run
failed_with 1 TFM_OPENCL_GEMM
verdict $? 'tune with the variable set: there is nothing to choose'
unset TFM_OPENCL_GEMM
call_with TFM_OPENCL_TUNE=off logits --ids 1,2,3 -v
reason 'our own kernel, because the device is a CPU' && ! grep -q 'is ignored' "$err"
verdict $? 'TFM_OPENCL_TUNE=off'
cp "$file" elsewhere.conf
rm "$file"
call_with "TFM_OPENCL_TUNE=$work/here/elsewhere.conf" logits --ids 1,2,3 -v
reason 'CLBlast, because tfm tune measured it'
verdict $? 'TFM_OPENCL_TUNE=FILE'
call_with TFM_OPENCL_TUNE=/nowhere.conf logits --ids 1,2,3
test $code -eq 0 && test "$(grep -c 'tune file /nowhere.conf is ignored: No such file' "$err")" -eq 1
verdict $? 'a named file that is not there: one line'

for bad in 'gemm = best|gemm is own or clblast' 'speed = 1|there is no key' 'gemm clblast|no .key = value.' \
    'xgemm.KWG = 16|parameters of CLBlast are missing' 'xgemm.NAME = 1|.*has no parameter' 'xgemm.KWG = x|.*no number' \
    'xgemm.KWG = 99999|.*no number' 'version = 2|it is of version' 'device = another|it is of the device' \
    'driver = 0|it is of the driver'; do
    with "${bad%%|*}"
    ignored "${bad#*|}"
    verdict $? "ignored with one line: ${bad%%|*}"
done
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
