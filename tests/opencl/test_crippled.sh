#!/bin/sh
# SPDX-License-Identifier: MIT
# A device without a compiler, or whose compiler refuses the kernels: auto takes the next device, a device that
# was named is an error that says why. Two devices of PoCL, of which one is crippled (crippled.c). Catches a
# whole backend given up with one device, another device in place of the one that was named, a lost reason.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
shim=$builddir/tests/opencl/.libs/crippled.so
test -f "$shim" || { echo "$shim is not built" >&2; exit 99; }
POCL_DEVICES='pthread basic'
export POCL_DEVICES
call devices
if test "$(grep -c '^opencl:[01] .*(Portable Computing Language)' "$out")" -ne 2; then
    echo '1..0 # SKIP no two devices of PoCL'
    exit 77
fi
# which of them PoCL lists first is its own affair
first=$(sed -n 's/^opencl:0  *\([a-z]*\)-.*/\1/p' "$out")
second=$(sed -n 's/^opencl:1  *\(.*\) (Portable.*/\1/p' "$out")

# crippled NAME LOST ARGUMENT...
crippled() {
    name=$1 lost=$2
    shift 2
    env LD_PRELOAD="$shim" TFM_TEST_CRIPPLED="$name" TFM_TEST_LOST="$lost" "$tfm" "$@" >"$out" 2>"$err" </dev/null
    code=$?
}
report() { grep -q -e "$1" "$out"; }

crippled "$first" nothing devices
test $code -eq 0 && grep -q "^opencl:0 *$first" "$out" && grep -q '^opencl:1 ' "$out"
verdict $? 'nothing lost: both devices'

crippled "$first" compiler devices
test $code -eq 0 && grep -q "^opencl:0 *$second " "$out" && ! grep -q '^opencl:1' "$out"
verdict $? 'no compiler: only the other device can be chosen'
crippled "$first" compiler doctor
test $code -eq 0 && report "^   opencl:0: $second, because" && report "not used: skipped $first.*: it has no compiler" &&
    report '^          compiler: no$'
verdict $? 'no compiler: auto takes the other, and the doctor says why'
crippled "$first" compiler doctor --backend "opencl:$first"
test $code -eq 1 && report "no device \"$first\" (there are: 0 = $second .*skipped $first.*: it has no compiler"
verdict $? 'no compiler: an error when it was named, with the reason and the choices'
crippled - compiler doctor
test $code -eq 0 && report "backend opencl: skipped $first.*: it has no compiler; skipped .*: it has no compiler" &&
    ! report '^   opencl:[01]: '
verdict $? 'no device has a compiler: auto takes another backend'
crippled - compiler doctor --backend opencl
test $code -eq 1 && report "backend \"opencl\" cannot be used here: skipped $first.*it has no compiler"
verdict $? '... an error when it was named'

crippled "$first" build doctor
test $code -eq 0 && report "^   opencl:1: $second, because it has the highest score, 50, of those that open" &&
    report "opencl: device 0 ($first.*clBuildProgram: the kernels do not build on .*; auto tries the next"
verdict $? 'kernels do not build: auto takes the next device and says so'
crippled "$first" build doctor --backend opencl:0
test $code -eq 1 && report "clBuildProgram: the kernels do not build on $first" && ! report '^   opencl:1: '
verdict $? '... an error when it was named'
crippled - build doctor
test $code -eq 0 && ! report '^   opencl:[01]: ' && report "device 0 ($first.*clBuildProgram" &&
    report 'device 1 (.*clBuildProgram'
verdict $? '... on both: auto takes another backend'

# the device opens: the kernel is built when a plan is compiled
toy toy.gguf
call logits -m toy.gguf --backend opencl --ids 1,2,3
cp "$out" "$work/want"
for lost in 'build tfm_run_linear(' 'build tfm_run_persistent('; do
    crippled "$first" "$lost" logits -m toy.gguf --ids 1,2,3 -v
    test $code -eq 0 && cmp -s "$out" "$work/want" &&
        test "$(grep -c "warning: opencl: .*the kernels do not build on $first.*; auto takes the next" "$err")" -eq 1 &&
        grep -q "device 0: opencl: $second" "$err"
    verdict $? "a kernel of a plan does not build ($lost): auto takes the next device, and says so once"
    crippled "$first" "$lost" logits -m toy.gguf --backend opencl:0 --ids 1,2,3
    test $code -eq 1 && test ! -s "$out" && grep -q "the kernels do not build on $first" "$err" && ! grep -q 'takes the next' "$err"
    verdict $? '... an error when it was named'
    crippled - "$lost" logits -m toy.gguf --ids 1,2,3 -v
    test $code -eq 0 && test "$(grep -c 'auto takes the next' "$err")" -eq 2 && grep -q 'device 0: ' "$err" && ! grep -q 'device [01]: opencl' "$err"
    verdict $? '... on both: auto takes another backend'
done
finish
