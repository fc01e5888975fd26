# SPDX-License-Identifier: MIT
# Sourced by the tests of the program: runs it in an empty folder, keeps what it printed, counts cases.
set -u
srcdir=$(cd "${TFM_TEST_SRCDIR:-.}" && pwd) builddir=$(cd "${TFM_TEST_BUILDDIR:-.}" && pwd)
tfm=$builddir/tfm
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
test -x "$tfm" || { echo "$tfm is not built" >&2; exit 99; }
mkdir "$work/here"
cd "$work/here" || exit 99
TFM_OPENCL_TUNE=off TFM_ACT=f32
export TFM_OPENCL_TUNE TFM_ACT
unset TFM_MODEL TFM_BACKEND TFM_VERBOSE TFM_STRICT TFM_THREADS TFM_OPENCL_GEMM TFM_OPENCL_PERSISTENT TFM_OPENCL_PIN TFM_PROFILE \
    TFM_OPENCL_SHAPE TFM_OPENCL_MAX_GROUP TFM_OPENCL_MAX_ALLOC
TFM_THREADS=1
export TFM_THREADS

case_number=0
# Runs the program: its output is in $out, its messages in $err, its exit code in $code.
out=$work/out err=$work/err code=0
call() {
    "$tfm" "$@" >"$out" 2>"$err" </dev/null
    code=$?
}
# call_with VARIABLE=VALUE ARGUMENT...: the same with something in the environment.
call_with() {
    setting=$1
    shift
    env "$setting" "$tfm" "$@" >"$out" 2>"$err" </dev/null
    code=$?
}
# verdict STATUS TEXT: one test case; shows what the program said when it failed.
verdict() {
    case_number=$((case_number + 1))
    if test "$1" -eq 0; then
        echo "ok $case_number - $2"
    else
        echo "not ok $case_number - $2"
        echo "# exit code $code"
        # what is cut off ends within a line: the next result must not stand behind it
        { head -c 2000 "$out"; echo; } | sed 's/^/# out: /'
        { head -c 2000 "$err"; echo; } | sed 's/^/# err: /'
    fi
}
lines() { wc -l <"$1" | tr -d ' '; }
# The program failed as it should: exit code $1, nothing on standard output, one line on standard error
# that holds $2.
failed_with() {
    test "$code" -eq "$1" && test ! -s "$out" && test "$(lines "$err")" -eq 1 &&
        grep -q -F -e "$2" "$err"
}
# Writes a toy model: toy FILE [ARGUMENT of make_toy...]
toy() { "$builddir/tests/llm/make_toy" "$@" || exit 99; }
# The value at a path of the JSON in $out: json 0.n_prompt
json() { "$builddir/tests/tools/json_get" "$1" <"$out"; }
finish() { echo "1..$case_number"; }
