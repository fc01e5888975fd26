#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm devices: what it prints can be given to --backend as it is. Catches a spec that means another device, an
# order that is not that of auto, a device that is missing without a word.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
toy toy.gguf
TFM_MODEL=$work/here/toy.gguf
export TFM_MODEL

call devices
cp "$out" "$work/text"
test $code -eq 0 && grep -q -x 'reference:0  *host, cpu' "$out"
verdict $? 'a line a device: spec, name, kind'
test "$(lines "$out")" -eq "$(grep -c -E '^[a-z0-9_]+:[0-9]+ +[^ ].*, (cpu|gpu|accelerator)$' "$out")"
verdict $? 'every line has that form'

call devices --json
n=$(json '#')
test $code -eq 0 && test "$n" -eq "$(lines "$work/text")"
verdict $? "--json has the same $n devices"
i=0 wrong=0 last=1000000
while test $i -lt "$n"; do
    spec=$(json $i.device) name=$(json $i.name) platform=$(json $i.platform)
    test "$spec" = "$(json $i.backend):$(json $i.index)" || wrong="$wrong, $spec has another name"
    line="$spec $name"
    test -z "$platform" || line="$line ($platform)"
    sed -n "$((i + 1))p" "$work/text" | tr -s ' ' | grep -q -x -F "$line, $(json $i.kind)" ||
        wrong="$wrong, $spec is not line $((i + 1))"
    test "$(json $i.score)" -le "$last" || wrong="$wrong, $spec has the higher score"
    last=$(json $i.score)
    i=$((i + 1))
done
echo "# $wrong"
test "$wrong" = 0
verdict $? 'text and JSON agree; the order is that of the scores'

# the first is what auto takes; each can be had by its spec
call run -n 1 --backend auto
first=$(sed -n '1s/:.*//p' "$work/text")
test $code -eq 0 && grep -q "| $first: " "$err"
verdict $? "auto takes the first: $first"
cut -d ' ' -f 1 "$work/text" >"$work/specs"
while read -r spec; do
    call run -n 1 --backend "$spec"
    test $code -eq 0 && grep -q "| ${spec%%:*}: " "$err"
    verdict $? "run --backend $spec"
    call run --backend "${spec%%:*}:99"
    failed_with 1 "(there are: 0 = "
    verdict $? "${spec%%:*}:99: an error that lists the devices"
done <"$work/specs"

echo 'no shared object' >bad.so
call devices --plugin ./bad.so
test $code -eq 0 && ! grep -q bad "$out" && grep -q 'bad.so has no device here: dlopen: ' "$err"
verdict $? 'a file that is refused is told on standard error'
if test -f "$builddir/tests/plugins/.libs/fake.so"; then
    call devices --plugin "$builddir/tests/plugins/.libs/fake.so"
    test $code -eq 0 && grep -q '^fake:0 ' "$out"
    verdict $? 'a plugin: its devices too'
fi
if test -f "$builddir/backends/opencl/.libs/opencl.so"; then
    mkdir "$work/no-drivers"
    call_with "OCL_ICD_VENDORS=$work/no-drivers" devices
    test $code -eq 0 && ! grep -q '^opencl:' "$out" && grep -q 'opencl has no device here: no OpenCL platform' "$err"
    verdict $? 'a machine without OpenCL: said on standard error'
fi
call devices nonsense
failed_with 2 "'nonsense' is not an option"
verdict $? 'an argument that is none'
finish
