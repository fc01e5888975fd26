#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs `tfm check-backend` on every OpenCL implementation that can be had here, in both shapes, op by op, and prints
# docs/portability.md. What is missing is fetched into BUILD/portability and used from there: nothing is
# installed, so nothing else on the machine sees another device. Not a part of `make check`: it needs a
# network and takes minutes, on the simulators hours. It can be taken up again: an op that a row was run with at this
# commit is not run once more, and what is run later leaves the other ops of its row as they were.
set -u
usage='usage: tests/portability/table.sh [-o OP[,OP...]] [BUILD [ROW...]]    BUILD: a built tree (.), ROW: IMPLEMENTATION-SHAPE

       tests/portability/table.sh b                         all rows
       tests/portability/table.sh b pocl-group              one row, the others as they were
       tests/portability/table.sh -o adamw,rope b pocl-wide two ops of it
       tests/portability/table.sh b none                    the table alone

Rows: pocl, intel, rusticl, oclgrind, device; shapes: wide, group. device is the GPU or accelerator that
auto takes, where there is one, or the one that TFM_PORTABILITY_DEVICE names (opencl:N).
TFM_PORTABILITY_NODES=N runs N nodes of each op instead of all, or of 2 and 3 of rusticl and oclgrind. The ops of the
rows oclgrind are those of races.sh, the same runs. Exit code 1 when a row has failures or too few cases.'
case ${1-} in -h | --help) echo "$usage"; exit 0 ;; esac
only=
test "${1-}" = -o && { only=$(echo "${2-}" | tr , ' '); shift 2; }

source_tree=$(cd "$(dirname "$0")/../.." && pwd) || exit 2
build=$(cd "${1:-.}" && pwd) || exit 2
test $# -gt 0 && shift
test -x "$build/tfm" || { echo "$build/tfm is not built" >&2; exit 2; }
. "$source_tree/tests/portability/oclgrind.sh" # work, all_ops, commit
mkdir -p "$work/rows" "$work/races" "$work/cache" || exit 2
rows='pocl-wide pocl-group intel-wide intel-group rusticl-wide rusticl-group oclgrind-wide oclgrind-group device-wide device-group'
wanted=${*:-$rows}

intel_packages='intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0 tbb==2023.2.0 tcmlib==1.6.0'
oclgrind_packages='oclgrind liboclgrind-21.10'
rusticl_packages='mesa-opencl-icd libllvmspirvlib15'
root=$work/root

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
    have_oclgrind || { reason='Oclgrind has no driver in it'; return 1; }
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

# run OP FILE: the environment and the bounds of an implementation, then the check.
run() (
    bounds="--limit 300 --no-times --nodes $nodes" subject=${subject:-opencl:0}
    case $name in
        pocl) export OCL_ICD_VENDORS="$work/pocl" POCL_CACHE_DIR="$work/cache" ;;
        intel) export OCL_ICD_VENDORS="$work/intel-vendors" LD_LIBRARY_PATH="$work/intel/lib" ;;
        rusticl)
            export OCL_ICD_VENDORS="$work/rusticl" LD_LIBRARY_PATH="$libraries" RUSTICL_ENABLE=llvmpipe
            bounds="--limit 3000 --no-times --nodes $nodes" ;;
        oclgrind)
            simulate races "$1" "$shape" "$nodes" "$2"
            return ;;
    esac
    export TFM_PLUGIN_PATH="$build/backends/opencl/.libs" TFM_OPENCL_SHAPE="$shape"
    # shellcheck disable=SC2086
    "$build/tfm" check-backend "$subject" --op "$1" $bounds >"$2.tap" 2>"$2.err"
)

file_of() { # OP: where its results are, without the ending
    if test "$name" = oclgrind; then echo "$work/races/$shape-$1"; else echo "$work/rows/$row-$1"; fi
}

# Each op that was not run at this commit with so many nodes (0 = all): as races.sh has it.
run_all() {
    mark="$commit $nodes"
    for op in ${only:-$all_ops}; do
        file=$(file_of "$op")
        test "$(cat "$file.done" 2>/dev/null)" = "$mark" && continue
        rm -f "$file.done"
        run "$op" "$file"
        grep -q '^1\.\.[0-9]' "$file.tap" && echo "$mark" >"$file.done"
        echo "$row $op: $(grep -c '^ok ' "$file.tap") passed, $(grep -c '^not ok ' "$file.tap") failed" >&2
    done
}

# Cases, failures and what was skipped and why, over the ops. The cases of the device itself, the same with each op, count
# with the first. An op that the backend takes and of which no case ran has failed; so has a run that broke off.
count() {
    for op in $all_ops; do
        file=$(file_of "$op")
        echo "op $op"
        echo "commit $(cat "$file.done" 2>/dev/null)"
        test "$name" = oclgrind && echo "races $(reports "$file.log" 2>/dev/null || :)"
        cat "$file.tap" 2>/dev/null
    done | awk -v version="$version" -v shape="$shape" -v floor="$floor" '
        /^op / { op = $2; ops[++n_ops] = op; next }
        /^commit / {
            if ($2 == "") text = text "; " op " was not run to its end"
            else { if (!($2 in at)) order[++n_commits] = $2; at[$2] = at[$2] " " op; many[$2]++ }
            failed += $2 == ""
            if (!fewest || $3 + 0 < fewest) fewest = $3 + 0
            next
        }
        /^races / { races += $2; raced = 1; next }
        /^# [a-z_]+: refuses [0-9]+ of [0-9]+ nodes/ { refused[op] += $4; all[op] = $6 }
        { own = $4 == op || $4 == op ":" || $5 == op || $5 == op ":" }
        !own && n_ops > 1 && /^ok / { next }
        /^ok [0-9]+ - .*: questions to supports/ { asked[op] = 1; ran++; next }
        /^ok .* # SKIP / { why = $0; sub(/.* # SKIP /, "", why); skipped[why]++; next }
        /^ok / { ran++; cases[op] += own }
        /^not ok / { ran++; failed++; cases[op] += own; bad[op]++ }
        END {
            for (i = 1; i <= n_ops; i++) {
                op = ops[i]
                if (asked[op] && !cases[op] && !(op in refused && refused[op] == all[op])) {
                    failed++
                    text = text "; " op " was not run"
                }
                if (bad[op]) text = text "; " bad[op] " failed of " op
            }
            if (fewest) text = text "; " fewest " nodes of each op"
            for (why in skipped) text = text "; " skipped[why] " skipped: " why
            if (raced) { text = text "; " (races + 0) " data races"; failed += races }
            if (ran < floor) text = text "; fewer than " floor " cases"
            most = order[1]
            for (i = 2; i <= n_commits; i++) if (many[order[i]] > many[most]) most = order[i]
            commits = most
            for (i = 1; i <= n_commits; i++) if (order[i] != most) commits = commits ";" at[order[i]] " at " order[i]
            printf "| %s | %s | %d | %d | %s | %s |\n", version, shape, ran, failed, substr(text, 3), commits
            exit failed > 0 || ran < floor
        }' >"$work/rows/$row.md"
}

status=0
for row in $wanted; do
    name=${row%-*} shape=${row#*-} reason='' version='' subject=''
    case " $rows " in *" $row "*) ;; *) test "$row" = none && continue; echo "$usage" >&2; exit 2 ;; esac
    if ! "get_$name"; then
        echo "| $version | $shape | 0 | 0 | not run: $reason | $commit |" >"$work/rows/$row.md"
        continue
    fi
    floor=1000 nodes=${TFM_PORTABILITY_NODES:-0}
    case $name in
        rusticl) floor=200 nodes=${TFM_PORTABILITY_NODES:-2} ;;
        oclgrind) floor=200 nodes=${TFM_PORTABILITY_NODES:-3} ;;
    esac
    echo "$row: $version" >&2
    run_all
    count || status=1
    cat "$work/rows/$row.md" >&2
done

cat <<'END'
# Portability

On which implementations of OpenCL do the kernels compute what the reference computes?

Each row is runs of `tfm check-backend opencl --op OP` by `tests/portability/table.sh`, of every op, at the commit in
the last column or, where ops are named, at another: every dtype that the backend takes, against the reference within
the op's tolerance. Where a number of nodes is named, so many of each op were run, at even distances; else all of them.
An op that the backend takes and of which no case ran counts as failed.

| implementation | shape | cases | failed | skipped, remarks | commit |
|---|---|---|---|---|---|
END
for row in $rows; do
    test -e "$work/rows/$row.md" && cat "$work/rows/$row.md" || echo "| ${row%-*} | ${row#*-} | 0 | 0 | not run | |"
done
sed -n '/^## Commands/,$p' "$source_tree/docs/portability.md" 2>/dev/null | sed '1s/^/\n/'
exit $status
