#!/bin/sh
# SPDX-License-Identifier: MIT
# The shapes of the kernels, and devices that allow less (case A39): groups of 1, 8, 64 and 224 work-items at most,
# no vectors, buffers of a few KiB. Catches a size of a group that is taken for granted or no power of two where the
# sums want one, a weight that a buffer cannot hold and that nobody refuses, a setting that is ignored.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
subject='opencl:Portable Computing Language'
"$tfm" backends 2>/dev/null | grep -q 'Portable Computing Language' || { echo 'no PoCL device'; exit 77; }

checks() {
    call check-backend "$subject" --nodes 2 --one-thread --no-times "$@"
    test $code -eq 0 && grep -q ' 0 failed' "$out"
}
sums='linear gqa_attention rms_norm layer_norm'
TFM_OPENCL_SHAPE=group
export TFM_OPENCL_SHAPE
for most in 1 8 64 224; do
    TFM_OPENCL_MAX_GROUP=$most
    export TFM_OPENCL_MAX_GROUP
    result=0
    for op in $sums; do
        checks --op "$op" || { result=1; break; }
    done
    verdict $result "groups of at most $most work-items"
    # each size is compiled anew: one of them with all that there is
    test $most -ne 8 && continue
    checks --nodes 1
    verdict $? "groups of at most $most work-items: a node of every op"
done
unset TFM_OPENCL_MAX_GROUP
TFM_OPENCL_GEMM=clblast checks --op linear
verdict $? 'the group shape around CLBlast'

# what is said about it
call doctor
grep -q 'shape of the kernels: group, up to [0-9]* work-items, because TFM_OPENCL_SHAPE says so' "$out"
verdict $? 'the shape is told, with its reason'
for value in TFM_OPENCL_SHAPE=broad TFM_OPENCL_SHAPE=Group; do
    call_with "$value" check-backend "$subject" --op relu --nodes 1 --no-times
    test $code -eq 1 && grep -q "TFM_OPENCL_SHAPE is '.*'; it must be one of: auto, wide, group" "$out"
    verdict $? "$value: the choices are listed"
done
for value in 0 8x 99999999999999999999999; do
    call_with "TFM_OPENCL_MAX_GROUP=$value" check-backend "$subject" --op relu --nodes 1 --no-times
    test $code -eq 1 && grep -q 'TFM_OPENCL_MAX_GROUP is .*; it must be a whole number of at least 1' "$out"
    verdict $? "TFM_OPENCL_MAX_GROUP=$value is refused"
done

# a CPU without vectors of its own: group when nothing is said, short kernels and no phases in the wide shape
shim=$builddir/tests/opencl/.libs/crippled.so
test -f "$shim" || { echo "$shim is not built" >&2; exit 99; }
bare() {
    env LD_PRELOAD="$shim" TFM_TEST_CRIPPLED=- TFM_TEST_LOST=vectors "$@" >"$out" 2>"$err" </dev/null
    code=$?
}
TFM_OPENCL_SHAPE=auto
bare "$tfm" doctor
grep -q 'shape of the kernels: group, up to [0-9]* work-items, because the device has no vectors of its own' "$out"
verdict $? 'no vectors: auto takes the group shape'
TFM_OPENCL_SHAPE=wide
bare "$tfm" doctor
grep -q 'shape of the kernels: wide, short kernels for a device without vectors, because TFM_OPENCL_SHAPE says so' "$out" &&
    grep -q 'persistent kernel: off, because only a CPU with vectors' "$out"
verdict $? 'no vectors: the wide shape says that its kernels are short'
for op in linear gqa_attention; do
    bare "$tfm" check-backend "$subject" --op $op --one-thread --no-times
    test $code -eq 0 && grep -q ' 0 failed' "$out"
    verdict $? "no vectors: $op in short kernels"
done
bare env TFM_OPENCL_PERSISTENT=on "$tfm" check-backend "$subject" --op relu --nodes 1 --no-times
test $code -eq 1 && grep -q "TFM_OPENCL_PERSISTENT is 'on', but .* has no vectors of its own" "$out"
verdict $? 'no vectors: a persistent kernel that is demanded is refused'

# every op has groups of many work-items in the group shape: a device on which one alone is refused
single() {
    env LD_PRELOAD="$shim" TFM_TEST_CRIPPLED=- TFM_TEST_LOST=single "$@" >"$out" 2>"$err" </dev/null
    code=$?
}
TFM_OPENCL_SHAPE=wide
single "$tfm" check-backend "$subject" --op relu --nodes 1 --one-thread --no-times
test $code -eq 1 && grep -q 'clEnqueueNDRangeKernel.*CL_INVALID_WORK_GROUP_SIZE' "$out"
verdict $? 'no groups of one: the wide shape fails'
TFM_OPENCL_SHAPE=group
single "$tfm" check-backend "$subject" --nodes 1 --one-thread --no-times
test $code -eq 0 && grep -q ' 0 failed' "$out"
verdict $? 'no groups of one: every op in the group shape'
single env TFM_OPENCL_GEMM=clblast "$tfm" check-backend "$subject" --op linear --nodes 1 --one-thread --no-times
test $code -eq 0 && grep -q ' 0 failed' "$out"
verdict $? 'no groups of one: what surrounds CLBlast'
TFM_OPENCL_SHAPE=wide

# buffers of 8 KiB: small weights fit, in several buffers; a large one is refused with both numbers
TFM_OPENCL_SHAPE=wide
TFM_OPENCL_MAX_ALLOC=8192
export TFM_OPENCL_MAX_ALLOC
call check-backend "$subject" --op linear --one-thread --no-times
grep -q '^ok [0-9]* - linear f32 weight \[3, 1\]: 1 row$' "$out"
verdict $? 'buffers of 8 KiB: a small weight'
test $code -eq 1 && grep '^not ok ' "$out" | grep -v 'allocations fail' |
    grep -q -E 'takes [0-9]+ bytes, more than the 8192 |[0-9]+ bytes is more than the 8192 '
verdict $? 'buffers of 8 KiB: a large weight is refused, with both numbers'
! grep -q -E 'crashed|ended with exit code|is .* instead of' "$out"
verdict $? 'buffers of 8 KiB: nothing crashes and nothing is wrong'
finish
