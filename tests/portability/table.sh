#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs `tfm check-backend` on every OpenCL implementation that can be had here, in both shapes, and prints
# docs/portability.md. What is missing is fetched into BUILD/portability and used from there: nothing is
# installed, so nothing else on the machine sees another device. Not a part of `make check`: it needs a
# network and takes minutes, on the simulators many.
set -u
usage='usage: tests/portability/table.sh [BUILD [ROW...]]    BUILD: a built tree (.), ROW: IMPLEMENTATION-SHAPE

       tests/portability/table.sh b                      all rows
       tests/portability/table.sh b pocl-group           one row anew, the others as they were
       tests/portability/table.sh b none                 the table alone

Rows: pocl, intel, rusticl, oclgrind, device; shapes: wide, group. device is the GPU or accelerator that
auto takes, where there is one, or the one that TFM_PORTABILITY_DEVICE names (opencl:N).
TFM_PORTABILITY_NODES=N runs N nodes of each op instead of all, or of 2 and 3 of rusticl and oclgrind. Exit code 1 when a row has failures or too few cases.'
case ${1-} in -h | --help) echo "$usage"; exit 0 ;; esac

source_tree=$(cd "$(dirname "$0")/../.." && pwd) || exit 2
build=$(cd "${1:-.}" && pwd) || exit 2
test $# -gt 0 && shift
test -x "$build/tfm" || { echo "$build/tfm is not built" >&2; exit 2; }
work=$build/portability
mkdir -p "$work/rows" "$work/cache" || exit 2
rows='pocl-wide pocl-group intel-wide intel-group rusticl-wide rusticl-group oclgrind-wide oclgrind-group device-wide device-group'
wanted=${*:-$rows}

intel_packages='intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0 tbb==2023.2.0 tcmlib==1.6.0'
oclgrind_packages='oclgrind liboclgrind-21.10'
rusticl_packages='mesa-opencl-icd libllvmspirvlib15'
root=$work/root libraries=$work/root/usr/lib/x86_64-linux-gnu

commit=$(git -C "$source_tree" rev-parse --short=10 HEAD 2>/dev/null || echo unknown)
test -z "$(git -C "$source_tree" status --porcelain --untracked-files=no 2>/dev/null)" || commit=$commit+

# ---- getting them: each sets `reason` when it cannot be had ----

# Debian packages, unpacked under root/ without installing them.
unpack_debian() {
    for package; do
        test -e "$work/$package.done" && continue
        (cd "$work" && rm -f "$package"_*.deb && apt-get download "$package" >/dev/null 2>&1 &&
            dpkg -x "$package"_*.deb "$root" && rm -f "$package"_*.deb && : >"$package.done") ||
            { reason="apt-get download $package failed"; return 1; }
    done
}

driver_of() { # file.icd LIBRARY: one driver, seen through OCL_ICD_VENDORS
    mkdir -p "$work/$1" && echo "$2" >"$work/$1/driver.icd"
}

get_pocl() {
    version="PoCL $(dpkg-query -W -f '${Version}' pocl-opencl-icd 2>/dev/null)" || version=PoCL
    driver=$(cat /etc/OpenCL/vendors/pocl.icd 2>/dev/null)
    test -n "$driver" || { reason='the Debian package pocl-opencl-icd is not installed'; return 1; }
    driver_of pocl "$driver"
}

get_intel() {
    version='Intel CPU runtime 2026.2.0'
    if ! test -e "$work/intel.done"; then
        mkdir -p "$work/wheels" "$work/intel"
        for package in $intel_packages; do
            python3 -m pip --disable-pip-version-check --no-input download --quiet --no-deps --no-cache-dir \
                --only-binary=:all: --dest "$work/wheels" "$package" >/dev/null 2>&1 ||
                { reason="pip download $package failed"; return 1; }
        done
        for wheel in "$work"/wheels/*.whl; do
            python3 -m zipfile --extract "$wheel" "$work/intel" || { reason="$wheel is broken"; return 1; }
        done
        mkdir -p "$work/intel/lib"
        mv -f "$work"/intel/*.data/data/lib/* "$work/intel/lib/"
        rm -f "$work"/intel/lib/libOpenCL.so* # a loader of its own would stand before the system's
        rm -rf "$work/wheels"
        : >"$work/intel.done"
    fi
    driver_of intel-vendors "$work/intel/lib/libintelocl.so"
}

get_rusticl() {
    version='Mesa rusticl on llvmpipe'
    test -d /usr/lib/clc || { reason='the Debian package libclc-15 is not installed (rusticl looks for it in /usr/lib/clc)'; return 1; }
    # shellcheck disable=SC2086
    unpack_debian $rusticl_packages || return 1
    version="$version $(dpkg-query -W -f '${Version}' libglapi-mesa 2>/dev/null)"
    ln -sf libRusticlOpenCL.so.1.0.0 "$libraries/libRusticlOpenCL.so.1"
    driver_of rusticl "$libraries/libRusticlOpenCL.so.1"
}

get_oclgrind() {
    version='Oclgrind 21.10'
    # shellcheck disable=SC2086
    unpack_debian $oclgrind_packages || return 1
    driver_of oclgrind "$root/usr/lib/oclgrind/liboclgrind-rt-icd.so"
}

get_device() {
    version=$("$build/tfm" devices --json 2>/dev/null | python3 -c '
import json, os, sys
named = os.environ.get("TFM_PORTABILITY_DEVICE", "")
for d in json.load(sys.stdin):
    if d["device"] == named if named else d["backend"] == "opencl" and d["kind"] != "cpu":
        print(d["device"], d["name"], "(" + d["platform"] + ")")
        break' 2>/dev/null)
    test -n "$version" || { version='GPU'; reason='no GPU or accelerator on this machine'; return 1; }
    subject=${version%% *} version=${version#* }
}

# ---- one row ----

# The environment and the bounds of an implementation, then the check.
check() {
    bounds="--limit 300 --no-times ${TFM_PORTABILITY_NODES:+--nodes $TFM_PORTABILITY_NODES}" subject=${subject:-opencl:0} floor=1000
    case $name in
        pocl) export OCL_ICD_VENDORS="$work/pocl" POCL_CACHE_DIR="$work/cache" ;;
        intel) export OCL_ICD_VENDORS="$work/intel-vendors" LD_LIBRARY_PATH="$work/intel/lib" ;;
        rusticl)
            export OCL_ICD_VENDORS="$work/rusticl" LD_LIBRARY_PATH="$libraries" RUSTICL_ENABLE=llvmpipe
            bounds="--limit 3000 --no-times --nodes ${TFM_PORTABILITY_NODES:-2}" floor=200 ;;
        oclgrind)
            export OCL_ICD_VENDORS="$work/oclgrind" LD_LIBRARY_PATH="$libraries" OCLGRIND_DATA_RACES=1
            # what its compiler optimizes uses instructions that it does not know
            export OCLGRIND_BUILD_OPTIONS=-cl-opt-disable OCLGRIND_LOG="$work/rows/$row.log"
            export TFM_OPENCL_PERSISTENT=off # a persistent kernel waits for others by races that are meant
            rm -f "$OCLGRIND_LOG"
            bounds="--limit 3000 --no-times --one-thread --nodes ${TFM_PORTABILITY_NODES:-3}" floor=200 ;;
    esac
    export TFM_PLUGIN_PATH="$build/backends/opencl/.libs" TFM_OPENCL_SHAPE="$shape"
    # shellcheck disable=SC2086
    "$build/tfm" check-backend "$subject" $bounds >"$work/rows/$row.tap" 2>"$work/rows/$row.err"
}

# Cases, failures and what was skipped and why. An op that the backend takes and of which no case ran has
# failed; so has a run that broke off.
count() {
    awk -v row="$row" -v version="$version" -v shape="$shape" -v commit="$commit" -v floor="$1" -v races="$2" '
        /^1\.\.[0-9]/ { ended = 1 }
        /^# [a-z_]+: refuses [0-9]+ of [0-9]+ nodes/ { op = substr($2, 1, length($2) - 1); refused[op] += $4; all[op] = $6 }
        /^ok [0-9]+ - .*: questions to supports/ { asked[$4 = substr($4, 1, length($4) - 1)] = 1; ran++; next }
        /^ok .* # SKIP / { why = $0; sub(/.* # SKIP /, "", why); skipped[why]++; next }
        /^ok / { ran++; cases[$4]++ }
        /^not ok / { ran++; failed++; cases[$4]++ }
        END {
            for (op in asked)
                if (!cases[op] && !(op in refused && refused[op] == all[op])) {
                    failed++
                    text = text "; " op " was not run"
                }
            if (!ended) { failed++; text = text "; it broke off" }
            for (why in skipped) text = text "; " skipped[why] " skipped: " why
            if (races != "") { text = text "; " races " data races"; failed += races }
            if (ran < floor) text = text "; fewer than " floor " cases"
            printf "| %s | %s | %d | %d | %s | %s |\n", version, shape, ran, failed, substr(text, 3), commit
            exit failed > 0 || ran < floor
        }' "$work/rows/$row.tap" >"$work/rows/$row.md"
}

status=0
for row in $wanted; do
    name=${row%-*} shape=${row#*-} reason='' version='' subject=''
    case " $rows " in *" $row "*) ;; *) test "$row" = none && continue; echo "$usage" >&2; exit 2 ;; esac
    if ! "get_$name"; then
        echo "| $version | $shape | 0 | 0 | not run: $reason | $commit |" >"$work/rows/$row.md"
        continue
    fi
    floor=1000
    case $name in rusticl | oclgrind) floor=200 ;; esac
    echo "$row: $version" >&2
    (check)
    races=
    test "$name" = oclgrind && races=$(cat "$work/rows/$row.log" 2>/dev/null | grep -c 'data race')
    count "$floor" "$races" || status=1
    cat "$work/rows/$row.md" >&2
done

cat <<'END'
# Portability

On which implementations of OpenCL do the kernels compute what the reference computes?

Each row is one run of `tfm check-backend opencl` by `tests/portability/table.sh`, at the commit in its last
column: every op and dtype that the backend takes, against the reference within the op's tolerance. Slow
implementations run some of the shapes of every op; the others all of them. An op that the backend takes and of
which no case ran counts as failed.

| implementation | shape | cases | failed | skipped, remarks | commit |
|---|---|---|---|---|---|
END
for row in $rows; do
    test -e "$work/rows/$row.md" && cat "$work/rows/$row.md" || echo "| ${row%-*} | ${row#*-} | 0 | 0 | not run | |"
done
sed -n '/^## Commands/,$p' "$source_tree/docs/portability.md" 2>/dev/null | sed '1s/^/\n/'
exit $status
