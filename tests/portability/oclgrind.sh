# SPDX-License-Identifier: MIT
# Sourced by races.sh, uninitialized.sh and table.sh, which set source_tree and build: one op on Oclgrind, one of its
# checks, in ordinary launches. Shapes of the cases are small: a simulated work-item does some million instructions
# a second.
work=$build/portability
simulator=$work/root/usr/lib/oclgrind/liboclgrind-rt-icd.so
libraries=$work/root/usr/lib/x86_64-linux-gnu
all_ops=$(sed -n 's/^TFM_OP([^,]*,[^,]*, *\([a-z_]*\),.*/\1/p' "$source_tree/lib/include/tfm/ops.def")

# The last commit that changed what computes; a tree with changes is marked, and none of its results is kept for later.
commit=$(git -C "$source_tree" log -1 --first-parent --format=%h --abbrev=10 -- kernels backends lib 2>/dev/null)
commit=${commit:-unknown}
test -z "$(git -C "$source_tree" status --porcelain --untracked-files=no -- kernels backends lib 2>/dev/null)" ||
    commit=$commit+
commit=${TFM_PORTABILITY_COMMIT:-$commit} # of a build that is older than the source

have_oclgrind() {
    test -e "$simulator" && mkdir -p "$work/oclgrind" && echo "$simulator" >"$work/oclgrind/driver.icd"
}

# simulate CHECK OP SHAPE NODES FILE: CHECK is races or uninitialized; OP+clblast: with products through CLBlast. FILE.tap,
# .err and .log (what Oclgrind found) come of it, and FILE.kernels, what was launched, a line each.
simulate() (
    export OCL_ICD_VENDORS="$work/oclgrind" LD_LIBRARY_PATH="$libraries" OCLGRIND_LOG="$5.log"
    # what its compiler optimizes uses instructions that it does not know
    export OCLGRIND_BUILD_OPTIONS=-cl-opt-disable OCLGRIND_INST_COUNTS=1
    export TFM_PLUGIN_PATH="$build/backends/opencl/.libs" TFM_OPENCL_SHAPE="$3"
    export TFM_OPENCL_PERSISTENT=off # a persistent kernel waits for others by races that are meant
    op=${2%+clblast}
    test "$op" = "$2" || export TFM_OPENCL_GEMM=clblast
    rm -f "$5".*
    case $1 in
        races) export OCLGRIND_DATA_RACES=1 ;;
        uninitialized)
            export OCLGRIND_UNINITIALIZED=1 OCLGRIND_BUILD_OPTIONS='-cl-opt-disable -DTFM_LANE_BY_LANE=1'
            export LD_PRELOAD="$work/host_writes.so"
            ;;
    esac
    "$build/tfm" check-backend opencl:0 --op "$op" --nodes "$4" --rows 40 --limit 3000 --no-times --one-thread \
        >"$5.tap" 2>"$5.err"
    sed -n "s/^Instructions executed for kernel '\(.*\)':/\1/p" "$5.err" >"$5.kernels"
    grep -v -e '^Instructions executed' -e '^ *[0-9,]* - ' "$5.err" >"$5.rest"
    mv "$5.rest" "$5.err"
    touch "$5.log"
)

# Reports of a FILE.log: each names its kernel once; the limit of their number is a line of its own.
reports() { grep -c '^	Kernel: ' "$1"; }

# every_op CHECK [NODES [OP...]]: a line for each shape and op, one for each kernel that was never launched. An op that
# was run with this commit is not run once more. Kernels of this processor's own instructions cannot be launched there,
# nor are the persistent one and those of limits.cl, which only take time.
every_op() {
    kind=$1 nodes=${2:-3} status=0
    shift
    test $# -gt 0 && shift
    mkdir -p "$work/$kind" || exit 2
    for shape in ${SHAPES:-wide group}; do
        for op in ${*:-$all_ops linear+clblast}; do
            file=$work/$kind/$shape-$op
            if test "$(cat "$file.done" 2>/dev/null)" != "$commit $nodes"; then
                simulate "$kind" "$op" "$shape" "$nodes" "$file"
                grep -q '^1\.\.[0-9]' "$file.tap" && echo "$commit $nodes" >"$file.done"
            fi
            cases=$(grep -c "^ok [0-9]* - ${op%+clblast} " "$file.tap") failed=$(grep -c '^not ok ' "$file.tap")
            found=$(reports "$file.log")
            echo "$shape $op: $cases cases, $failed failed, $found reports, kernels: $(sort "$file.kernels" | uniq -c |
                awk '{ printf "%s%s x %d", n++ ? ", " : "", $2, $1 }')"
            test "$cases" -gt 0 && test "$failed" -eq 0 && test "$found" -eq 0 && test -e "$file.done" || status=1
        done
    done
    cat "$source_tree"/kernels/*.cl | tr '\n' ' ' | grep -o '__kernel void *[a-z0-9_]*' | sed 's/.* //' | sort -u | while read -r kernel; do
        cat "$work/$kind"/*.kernels | grep -q -x "$kernel" || echo "$kernel: not launched"
    done
    return $status
}
