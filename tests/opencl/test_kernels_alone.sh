#!/bin/sh
# SPDX-License-Identifier: MIT
# Each kernel file compiles alone, as OpenCL C 1.2 with all warnings and without fp64. Catches a
# file that leans on what happens to be compiled before it, and language that only one driver takes.
root=${TFM_TEST_SRCDIR:-.}
clang=
for c in clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19; do
    if command -v "$c" >/dev/null 2>&1; then
        clang=$c
        break
    fi
done
if test -z "$clang"; then
    echo 'no clang to compile OpenCL C (Debian package: clang)'
    exit 77
fi
n=0
failed=0
for file in "$root"/kernels/*.cl; do
    n=$((n + 1))
    if "$clang" -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -fsyntax-only -Wall -Wextra \
        -Wpedantic -Werror -Wno-unused-function -Xclang -cl-ext=-cl_khr_fp64 "$file" >&2
    then
        echo "ok $n - ${file##*/}"
    else
        echo "not ok $n - ${file##*/}"
        failed=1
    fi
done
echo "1..$n"
exit $failed
