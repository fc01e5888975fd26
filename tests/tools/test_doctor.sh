#!/bin/sh
# SPDX-License-Identifier: MIT
# tfm doctor: facts that hold, a driver that crashes as a line of the report, the reason of a choice. Catches
# numbers that OpenCL does not say, a report that ends with the driver it is about, a fault that is not named.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
unset TFM_PLUGIN_TRIAL TFM_PLUGIN_PATH
opencl=$builddir/backends/opencl/.libs/opencl.so
modules=$builddir/tests/plugins/.libs

# sets $row to the path of a backend in the JSON of $out
find_backend() {
    i=0
    row=
    while test -z "$row" && test $i -lt "$(json 'backends.#')"; do
        test "$(json backends.$i.name)" != "$1" || row=backends.$i
        i=$((i + 1))
    done
    test -n "$row"
}
problem() { grep -A 100 -x 'what is wrong' "$out" | grep -q -e "$1"; }

call doctor
test $code -eq 0 && test ! -s "$err" && grep -q '^tfm [0-9.]*: [0-9]* CPUs, 1 threads, ' "$out" &&
    grep -q '^   reference  *usable  *built in$' "$out" && grep -q '^   reference:0 ' "$out" &&
    grep -q -x 'what is wrong' "$out"
verdict $? 'text: program, backends, devices, what is wrong'
first=$(sed -n '/^devices, /{n;s/^ *\([^ ]*\).*/\1/p;}' "$out")
grep -q "^   $first: .*, because it has the highest score" "$out"
verdict $? "auto takes the first device of the list: $first"

call doctor --json
ok=0
for path in program.version program.cpus program.threads program.memory_bytes places.0.source places.0.path \
    places.0.exists backends.0.file backends.0.status backends.0.facts devices.0.device devices.0.score \
    choice.asked choice.asked_by choice.device choice.name choice.why 'problems.#'; do
    json "$path" >/dev/null || { ok=1; echo "# $path is missing"; }
done
test $code -eq 0 && test $ok -eq 0 && test "$(json choice.asked)" = auto &&
    test "$(json choice.asked_by)" = nobody && test "$(json choice.device)" = "$(json devices.0.device)" &&
    test "$(json program.version)" = "$("$tfm" --version | cut -d ' ' -f 2)" &&
    test "$(json program.cpus)" = "$(env -u OMP_NUM_THREADS nproc)"
verdict $? '--json: the fields of the program, the places, the backends, the choice'

if test -f "$opencl"; then
    find_backend opencl && test "$(json $row.file)" = "$opencl" && cp "$out" "$work/json"
    verdict $? 'the opencl backend has facts'
    facts=$row.facts
    ok=0
    for path in loader.0.library loader.0.version loader.0.drivers_from drivers.0.loads caches.0.folder \
        caches.0.writable caches.0.size_bytes; do
        json "$facts.$path" >/dev/null || { ok=1; echo "# $facts.$path is missing"; }
    done
    json $facts.loader.0.library | grep -q 'libOpenCL.so' && test $ok -eq 0
    verdict $? 'the loader, the drivers, the caches of kernels'
    cache=$(json $facts.caches.0.folder)
    test "$cache" = "${POCL_CACHE_DIR-$cache}" &&
        test "$(json $facts.caches.0.files)" -le "$(find "$cache" -type f 2>/dev/null | wc -l)"
    verdict $? 'the cache of PoCL is where its variable says'
fi
if test -f "$opencl" && test "$(json $row.status)" = usable; then
    d=$facts.devices.0
    ok=0
    for path in device platform type name version driver compute_units max_work_group local_memory_bytes \
        global_memory_bytes max_alloc_bytes alignment_bytes fp16 fp64 integer_dot compiler; do
        json "$d.$path" >/dev/null || { ok=1; echo "# $d.$path is missing"; }
    done
    test $ok -eq 0 && test "$(json $facts.platforms.0.devices)" -ge 1
    verdict $? 'platforms and devices, each limit'
    ok=0 i=0 whats=
    while json choice.choices.$i.what >/dev/null; do
        whats="$whats|$(json choice.choices.$i.what)"
        test -n "$(json choice.choices.$i.choice)" && test -n "$(json choice.choices.$i.why)" || ok=1
        i=$((i + 1))
    done
    test $ok -eq 0 && case $whats in *GEMM*activations* | *activations*GEMM*) true ;; *) false ;; esac
    verdict $? "what was chosen on the device, with a reason each: $whats"

    # the same facts from another program
    if command -v clinfo >/dev/null; then
        clinfo --raw >"$work/clinfo" 2>/dev/null
        while read -r key name factor; do
            theirs=$(sed -n "s/^ *\(\[[^]]*\]\)\{0,1\} *CL_$name  *//p" "$work/clinfo" | head -n 1)
            ours=$(json $d.$key)
            case $theirs in CL_TRUE) theirs=true ;; CL_FALSE) theirs=false ;; esac
            case $factor in number) test "$ours" -eq "$theirs" ;; bits) test $((8 * ours)) -eq "$theirs" ;;
                *) test "$ours" = "$theirs" ;; esac
            verdict $? "clinfo agrees on $key: $ours"
        done <<'END'
name DEVICE_NAME text
driver DRIVER_VERSION text
compute_units DEVICE_MAX_COMPUTE_UNITS number
max_work_group DEVICE_MAX_WORK_GROUP_SIZE number
local_memory_bytes DEVICE_LOCAL_MEM_SIZE number
global_memory_bytes DEVICE_GLOBAL_MEM_SIZE number
max_alloc_bytes DEVICE_MAX_MEM_ALLOC_SIZE number
alignment_bytes DEVICE_MEM_BASE_ADDR_ALIGN bits
compiler DEVICE_COMPILER_AVAILABLE text
END
    fi
    call_with TFM_OPENCL_GEMM=clblast doctor --backend opencl
    test $code -eq 0 && grep -q '^   GEMM of many rows: CLBlast, because TFM_OPENCL_GEMM says so$' "$out" &&
        grep -q '^   opencl:0: .*, because it was named$' "$out"
    verdict $? 'a setting is the reason of what it sets'
    call_with TFM_OPENCL_GEMM=fast doctor
    test $code -eq 1 && problem 'TFM_OPENCL_GEMM.*auto, own, clblast'
    verdict $? 'a setting that is none: the choices'
fi

# machines with something wrong
if test -f "$opencl"; then
    mkdir "$work/none" "$work/some"
    call_with "OCL_ICD_VENDORS=$work/none" doctor
    test $code -eq 0 && problem 'backend opencl: no OpenCL platform' && problem 'no .icd file is in it' &&
        problem 'is slow for whole models'
    verdict $? 'no driver: what is missing, and what auto takes instead'
    call_with "OCL_ICD_VENDORS=$work/none" doctor --backend opencl
    test $code -eq 1 && problem 'no OpenCL platform' && grep -q 'no device can be had' "$err"
    verdict $? '... exit code 1 when the backend was named'
    echo libnowhere.so.9 >"$work/some/gone.icd"
    call_with "OCL_ICD_VENDORS=$work/some" doctor
    test $code -eq 0 && problem "driver $work/some/gone.icd: libnowhere.so.9: cannot open shared object file"
    verdict $? 'a driver whose library is not there'
    if test -f "$modules/crash_ctor.so"; then
        echo "$modules/crash_ctor.so" >"$work/some/gone.icd"
        call_with "OCL_ICD_VENDORS=$work/some" doctor
        test $code -eq 0 && problem "driver $work/some/gone.icd: it ended the process that loaded it" &&
            problem 'backend opencl: .*killed by signal 11 (Segmentation fault) in probe' &&
            grep -q -E '^   (blas|reference):0: ' "$out"
        verdict $? 'a driver that crashes is named, and the report goes on'
        call_with "OCL_ICD_VENDORS=$work/some" doctor --json
        find_backend opencl && test "$(json $row.status)" = refused &&
            test "$(json $row.facts.drivers.0.file)" = "$work/some/gone.icd"
        verdict $? '... in JSON too'
    fi
fi
if test -f "$modules/crash_probe.so"; then
    call doctor --plugin "$modules/crash_probe.so"
    test $code -eq 0 && problem 'backend bad: .*killed by signal 11 (Segmentation fault) in probe'
    verdict $? 'a plugin that was refused, and why'
    call_with TFM_PLUGIN_TRIAL_HELPER=/nowhere/tfm-probe doctor
    test $code -eq 0 && problem '/nowhere/tfm-probe cannot be started'
    verdict $? 'the helper that is not there'
fi
call_with "TFM_PLUGIN_PATH=$work/nowhere:$work/here" doctor
test $code -eq 0 && grep -q "TFM_PLUGIN_PATH  $work/nowhere (is not there)\$" "$out" &&
    grep -q "TFM_PLUGIN_PATH  $work/here\$" "$out"
verdict $? 'where backends are looked for'
call_with TFM_BACKEND=nonsense doctor
test $code -eq 1 && problem 'TFM_BACKEND: no backend "nonsense".*there are: reference' && grep -q '^what runs: nonsense (TFM_BACKEND)' "$out"
verdict $? 'a backend that is none: the choices'
call doctor --backend reference:3
test $code -eq 1 && problem 'reference.* has no device "3" (there are: 0 = host)'
verdict $? 'a device that is none: the choices'
finish
