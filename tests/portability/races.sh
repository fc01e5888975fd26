#!/bin/sh
# SPDX-License-Identifier: MIT
# Oclgrind looks for data races in every kernel, in both shapes, in ordinary launches: each op with NODES of its nodes,
# in all ways that `tfm check-backend` runs them. Takes hours on a busy machine, so it can be taken up again: an op
# that was run with this commit is not run once more. `tests/portability/table.sh BUILD oclgrind-wide` fetches Oclgrind.
set -u
usage='usage: tests/portability/races.sh BUILD [NODES [OP...]]    BUILD: a built tree; NODES: of each op (3); OP: all

Prints a line for each op and shape. Exit code 1 when there is a race, a failed case or an op that did not run.'
case ${1-} in '' | -h | --help) echo "$usage"; exit 0 ;; esac
source_tree=$(cd "$(dirname "$0")/../.." && pwd) || exit 2
build=$(cd "$1" && pwd) || exit 2
nodes=${2:-3}
shift
test $# -gt 0 && shift
work=$build/portability
libraries=$work/root/usr/lib/x86_64-linux-gnu
test -e "$work/root/usr/lib/oclgrind/liboclgrind-rt-icd.so" ||
    { echo "no Oclgrind in $work: tests/portability/table.sh $build oclgrind-wide fetches it" >&2; exit 2; }
ops=${*:-$(sed -n 's/^TFM_OP([^,]*,[^,]*, *\([a-z_]*\),.*/\1/p' "$source_tree/lib/include/tfm/ops.def")}
commit=$(git -C "$source_tree" rev-parse --short=10 HEAD 2>/dev/null || echo unknown)
mkdir -p "$work/races" "$work/oclgrind" || exit 2
echo "$work/root/usr/lib/oclgrind/liboclgrind-rt-icd.so" >"$work/oclgrind/driver.icd"
status=0

# check OP SHAPE FILE
check() (
    export OCL_ICD_VENDORS="$work/oclgrind" LD_LIBRARY_PATH="$libraries" OCLGRIND_DATA_RACES=1
    export OCLGRIND_BUILD_OPTIONS=-cl-opt-disable OCLGRIND_LOG="$3.log" # as in table.sh
    export TFM_PLUGIN_PATH="$build/backends/opencl/.libs" TFM_OPENCL_SHAPE="$2" TFM_OPENCL_PERSISTENT=off
    rm -f "$3.log" "$3.tap"
    "$build/tfm" check-backend opencl:0 --op "$1" --nodes "$nodes" --limit 3000 --no-times --one-thread >"$3.tap" 2>"$3.err"
)

for shape in group wide; do
    for op in $ops; do
        file=$work/races/$shape-$op
        if test "$(cat "$file.done" 2>/dev/null)" != "$commit $nodes"; then
            check "$op" "$shape" "$file"
            grep -q '^1\.\.[0-9]' "$file.tap" && echo "$commit $nodes" >"$file.done"
        fi
        cases=$(grep -c '^ok ' "$file.tap") failed=$(grep -c '^not ok ' "$file.tap")
        races=$(cat "$file.log" 2>/dev/null | grep -c 'data race')
        echo "$shape $op: $cases cases, $failed failed, $races data races"
        test "$cases" -gt 0 && test "$failed" -eq 0 && test "$races" -eq 0 && test -e "$file.done" || status=1
    done
done
exit $status
