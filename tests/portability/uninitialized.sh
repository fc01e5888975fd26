#!/bin/sh
# SPDX-License-Identifier: MIT
# Oclgrind looks for reads of memory that nobody has written (global, local and private), as races.sh does for races. Two
# things stand between it and the truth: what it does not know of the host's writes is made up for by host_writes.c,
# and its shuffles are avoided. Oclgrind 21.10 compares the numbers of a shuffle's lanes with the wrong constant, so that
# what comes from number 11 counts as unwritten; with TFM_LANE_BY_LANE (kernels/common.cl) no such number is left.
set -u
usage='usage: tests/portability/uninitialized.sh BUILD [NODES [OP...]]    as races.sh
       tests/portability/uninitialized.sh BUILD self-test         plants reads of memory that was not written, which must be found

Prints a line for each op and shape. Exit code 1 when there is a report, a failed case or an op that did not run.
SHAPES=group or wide: one shape.'
case ${1-} in '' | -h | --help) echo "$usage"; exit 0 ;; esac
source_tree=$(cd "$(dirname "$0")/../.." && pwd) || exit 2
build=$(cd "$1" && pwd) || exit 2
shift
. "$source_tree/tests/portability/oclgrind.sh"
have_oclgrind || { echo "no Oclgrind in $work: tests/portability/table.sh $build oclgrind-wide fetches it" >&2; exit 2; }
${CC:-cc} -std=c11 -O1 -shared -fPIC -o "$work/host_writes.so" "$source_tree/tests/portability/host_writes.c" -lOpenCL -ldl ||
    exit 2

# ---- the self-test ----

say() { # 0|other TEXT
    test "$1" -eq 0 && echo "ok - $2" || { echo "not ok - $2"; status=1; }
}

# alone EXPRESSION of float8 lo, hi, the halves of a constant: how many reports a branch on it makes
alone() {
    echo "__kernel void t(__global float *a) { const float16 v = (float16)(1.0f); const float8 lo = v.lo, hi = v.hi; if (($1) > 1.0f) a[0] = 2.0f; }" >"$place/t.cl"
    printf 't.cl\nt\n1 1 1\n1 1 1\n\n<size=128 fill=1 float>\n' >"$place/t.sim"
    (cd "$place" && LD_LIBRARY_PATH="$libraries" "$work/root/usr/bin/oclgrind-kernel" --uninitialized \
        --build-options -cl-opt-disable t.sim 2>&1) | grep -c -i 'depends on uninitialized'
}

# planted FILE FROM TO OP SHAPE NODES: how many reports, FROM being TO where it first stands in the kernel file
planted() {
    rm -rf "$place/kernels"
    cp -R "$source_tree/kernels" "$place/kernels"
    python3 - "$place/kernels/$1" "$2" "$3" <<'END' || return
import sys
path, old, new = sys.argv[1:]
text = open(path).read()
sys.exit("%s: '%s' is not there any more" % (path, old)) if old not in text else open(path, "w").write(text.replace(old, new, 1))
END
    (export TFM_KERNEL_PATH="$place/kernels" && simulate uninitialized "$4" "$5" "$6" "$place/planted")
    grep -q -x "tfm_run_$4.*" "$place/planted.kernels" || return
    reports "$place/planted.log"
}

if test "${1-}" = self-test; then
    status=0 place=$work/self-test
    mkdir -p "$place"
    n=$(alone 'hi.s3')
    test "$n" -gt 0
    say $? "Oclgrind's own fault: lane 3 of the upper half of a constant is reported ($n)"
    n=$(alone 'hi.s2 + hi.s4 + lo.s3 + v.sb')
    test "$n" -eq 0
    say $? "... its neighbours and the lane itself are not ($n)"
    n=$(planted rms_norm.cl 'squares' 'squares' rms_norm wide 1)
    test "${n:-1}" -eq 0
    say $? "a kernel as it is: $n reports"
    n=$(planted rms_norm.cl 'float16 squares = 0.0f' 'float16 squares' rms_norm wide 1)
    test "${n:-0}" -gt 0
    say $? "private memory: a sum that does not begin with 0: $n reports"
    planted sum_squares.cl 'to[b] = ' 'if (b != 1) to[b] = ' sum_squares wide 3 >/dev/null
    n=$(grep -c '^not ok .* is -*nan instead' "$place/planted.tap")
    test "$n" -gt 0
    say $? "global memory, which the check fills with NaN: the sum of a block that was not stored: $n failed cases"
    n=$(planted group.cl 'cells[me] = value' 'if (me != 1) cells[me] = value' sum_squares group 1)
    test "${n:-0}" -gt 0
    say $? "local memory: a work-item that does not store what it brings: $n reports"
    exit $status
fi
every_op uninitialized "$@"
