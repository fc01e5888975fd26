#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm backends, and backends that cannot be had. Catches a reason that is lost, a named backend that is
# silently replaced, a build tree that needs an environment to find its own backend.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
toy toy.gguf
TFM_MODEL=$work/here/toy.gguf
export TFM_MODEL
echo 'no shared object' >bad.so

call backends
test $code -eq 0 && test ! -s "$err" && grep -q '^reference  *[0-9.]*  *usable  *built in$' "$out" &&
    grep -q '^    0: ' "$out"
verdict $? 'the list: name, version, state, file, devices'
call backends --json --plugin ./bad.so
n=$(json '#')
test $code -eq 0 && test "$n" -ge 2
verdict $? '--json is a list'
found=0 refused=0 i=0
while test $i -lt "$n"; do
    case $(json $i.name) in reference)
        test "$(json $i.status)" = usable && test "$(json $i.file)" = 'built in' &&
            test "$(json $i.devices.0.kind)" = cpu && json $i.devices.0.name >/dev/null &&
            json $i.version | grep -q '[0-9]' && test "$(json $i.reason)" = '' && found=1 ;;
    esac
    case $(json $i.file) in *bad.so)
        test "$(json $i.status)" = refused && test -n "$(json $i.reason)" && refused=1 ;;
    esac
    i=$((i + 1))
done
test $found -eq 1
verdict $? '--json: name, version, file, status, reason, devices'
test $refused -eq 1
verdict $? '--json: a file that is refused has its reason'
call backends --plugin ./bad.so
test $code -eq 0 && grep -q 'refused .*bad.so' "$out"
verdict $? 'the list shows what was refused'

for verb in run 'logits --ids 1' 'bench -r 1' plan; do
    # shellcheck disable=SC2086
    call $verb --backend referense
    failed_with 1 referense && grep -q -w reference "$err"
    verdict $? "tfm $verb: an unknown backend, and what was meant"
done
TFM_BACKEND=nowhere
export TFM_BACKEND
call run
failed_with 1 nowhere
verdict $? 'TFM_BACKEND names an unknown backend'
call run --backend reference -n 1
test $code -eq 0 && grep -q '| reference: ' "$err"
verdict $? '--backend wins over TFM_BACKEND'
unset TFM_BACKEND
call run --backend reference:7
failed_with 1 7
verdict $? 'an unknown device'
call run --plugin ./bad.so --backend reference
failed_with 1 bad.so
verdict $? 'a plugin that will not load is an error'
call run --plugin nowhere.so --backend reference
failed_with 1 nowhere.so
verdict $? 'a plugin that is not there'

TFM_BACKEND=help
export TFM_BACKEND
for verb in run plan backends; do
    call $verb
    test $code -eq 0 && grep -q 'NAME\[:DEVICE\]' "$out" && grep -q '^reference' "$out"
    verdict $? "TFM_BACKEND=help tfm $verb prints syntax and list"
done
unset TFM_BACKEND
call run --backend help
test $code -eq 0 && grep -q 'NAME\[:DEVICE\]' "$out"
verdict $? '--backend help'

call backends -v
test $code -eq 0 && grep -q '^  *license MIT, ABI 1\.[0-9]*, score 0$' "$out"
verdict $? '-v adds license, ABI and score'
call backends --failed --plugin ./bad.so
test $code -eq 0 && grep -q 'refused .*bad.so' "$out" && ! grep -q '^reference ' "$out"
verdict $? '--failed: only what cannot be used'
call backends --failed --json --plugin ./bad.so
test $code -eq 0 && test "$(json 0.status)" = refused && test "$(json 0.shadowed_by)" = null
verdict $? '--failed --json'

if test -f "$builddir/tests/plugins/.libs/fake.so"; then
    modules=$builddir/tests/plugins/.libs
    call backends --failed --plugin "$modules/fake.so" --plugin "$modules/fake_again.so"
    test $code -eq 0 && grep -q "^fake .* shadowed  *$modules/fake_again.so\$" "$out" &&
        grep -q "already taken by $modules/fake.so, which was found first" "$out"
    verdict $? 'a plugin that is shadowed is listed, with the one that has its name'
    call backends --failed --json --plugin "$modules/fake.so" --plugin "$modules/fake_again.so"
    test $code -eq 0 && test "$(json 0.status)" = shadowed &&
        test "$(json 0.shadowed_by)" = "$modules/fake.so"
    verdict $? '... and in JSON'
    call backends --json --plugin "$builddir/tests/plugins/.libs/fake.so"
    grep -q '"file": .*fake.so"' "$out" && test "$(json 0.status)$(json 1.status)" != ''
    verdict $? 'a third backend is listed'
    name=$("$tfm" backends --plugin "$builddir/tests/plugins/.libs/fake.so" | awk '/fake\.so$/ { print $1 }')
    call run -n 2 --plugin "$builddir/tests/plugins/.libs/fake.so" --backend "$name"
    test $code -eq 0 && grep -q "| $name: " "$err"
    verdict $? "a third backend runs: $name"
    call plan -o json --plugin "$builddir/tests/plugins/.libs/fake.so" --backend "$name"
    fallbacks=$(json fallbacks)
    refusals=$(grep -c '"refusal": "[^"]' "$out")
    test $code -eq 0 && test "$fallbacks" -eq "$refusals"
    verdict $? "plan tells why each of $fallbacks nodes fell back"
fi

if test -f "$builddir/tests/plugins/.libs/crash_probe.so"; then
    modules=$builddir/tests/plugins/.libs
    unset TFM_PLUGIN_TRIAL
    for row in 'crash_probe:killed by signal 11 (Segmentation fault) in probe' \
        'exit_probe:exit code 0 in probe' 'crash_ctor:killed by signal 11 (Segmentation fault) in its constructor' \
        'hang_probe:no answer after 1 s in probe'; do
        call_with TFM_PLUGIN_TRIAL_SECONDS=1 backends --failed --plugin "$modules/${row%%:*}.so"
        test $code -eq 0 && test ! -s "$err" && grep -q "refused  *$modules/${row%%:*}.so\$" "$out" &&
            grep -q -F "in a trial in a process of its own: ${row#*:}" "$out"
        verdict $? "${row%%:*} is refused: ${row#*:}"
    done
    call_with "TFM_PLUGIN_PATH=$modules/crash_probe.so" run --backend auto -n 1
    test $code -eq 0 && test -s "$out" &&
        grep -q "warning: registry: skipped .*/crash_probe.so: .*killed by signal 11" "$err"
    verdict $? 'a plugin that crashes in probe is told, and another backend runs'
    call_with TFM_PLUGIN_TRIAL=perhaps backends
    failed_with 1 'auto, all, off'
    verdict $? 'an unknown TFM_PLUGIN_TRIAL: the choices'
    TFM_PLUGIN_TRIAL=off
fi

# from the build tree, with nothing in the environment
if test -f "$builddir/backends/opencl/.libs/opencl.so"; then
    env -i PATH="$PATH" "$tfm" backends >"$out" 2>"$err"
    code=$?
    test $code -eq 0 && grep -q "^opencl .*$builddir/backends/opencl/.libs/opencl.so" "$out"
    verdict $? 'the build tree finds its own opencl backend'
    TFM_PLUGIN_PATH=$work/here "$tfm" backends >"$out" 2>"$err"
    code=$?
    test $code -eq 0 && grep -q '^opencl ' "$out" && grep -q bad.so "$out"
    verdict $? '... behind what TFM_PLUGIN_PATH names'
    mkdir "$work/no-drivers"
    call_with "OCL_ICD_VENDORS=$work/no-drivers" run --backend opencl
    failed_with 1 'no OpenCL platform'
    verdict $? 'opencl on a machine without OpenCL'
    call_with "OCL_ICD_VENDORS=$work/no-drivers" run --backend auto -n 1
    test $code -eq 0 && grep -q -E '\| (reference|blas): ' "$err" && grep -q 'warning: opencl' "$err" &&
        test "$(lines "$err")" -eq 2
    verdict $? '... auto takes another one and says why'
fi
call backends
if grep -q '^opencl .* usable ' "$out"; then
    mkdir "$work/kernels"
    cp "$srcdir"/kernels/*.* "$work/kernels"
    echo 'this is no kernel' >>"$work/kernels/rms_norm.cl"
    call_with "TFM_KERNEL_PATH=$work/kernels" run --backend opencl
    # the compiler itself may add a count of its errors
    test $code -eq 1 && test ! -s "$out" && test "$(grep -c '^tfm' "$err")" -eq 1 &&
        grep -q 'rms_norm.cl' "$err" && grep -q BUILD "$err"
    verdict $? 'a kernel that does not build: one line with the place'
    call_with "TFM_KERNEL_PATH=$work/kernels" run -n 1
    test $code -eq 0 && test -s "$out" && grep -q 'rms_norm.cl.*auto tries the next$' "$err" &&
        ! grep -q '| opencl: ' "$err"
    verdict $? '... auto tries the next'
    # one that is compiled only with the plan, for more rows than phases take
    long='Once upon a time there was a kernel'
    cp "$srcdir"/kernels/rms_norm.cl "$work/kernels"
    for file in linear gqa_attention_split; do
        test -f "$srcdir/kernels/$file.cl" || continue
        echo 'this is no kernel' >>"$work/kernels/$file.cl"
        call_with "TFM_KERNEL_PATH=$work/kernels" run --backend opencl -n 1 -p "$long"
        test $code -eq 1 && test ! -s "$out" && grep -q BUILD "$err"
        verdict $? "$file: an error when opencl was named"
        call_with "TFM_KERNEL_PATH=$work/kernels" run -n 1 -p "$long"
        test $code -eq 0 && test -s "$out" && grep -q "$file.cl.*auto t[a-z]* the next\$" "$err" &&
            ! grep -q '| opencl: ' "$err"
        verdict $? "$file: ... auto takes the next"
        cp "$srcdir/kernels/$file.cl" "$work/kernels"
    done
fi
finish
