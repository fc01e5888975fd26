#!/bin/sh
# SPDX-License-Identifier: MIT
# What each shared object asks the loader for. Catches OpenCL or a text library that reaches libtfm, and
# a backend that needs a library of ours.
set -u
build=${TFM_TEST_BUILDDIR:-.}
command -v readelf >/dev/null || { echo 'readelf not found: install the Debian package binutils'; exit 77; }
test -f "$build/.libs/libtfm.so" || { echo 'no shared libraries in this build'; exit 77; }

# The loader itself and the runtimes of the sanitizers may always be there.
always='ld-linux.*|libasan|libubsan|libgcc_s|libstdc\+\+'
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p'; }

case_number=0
only() { # FILE ALLOWED
    case_number=$((case_number + 1))
    wrong=$(needed "$build/$1" | grep -v -E "^($always|$2)\.so" | tr '\n' ' ')
    if test -n "$(needed "$build/$1")" && test -z "$wrong"; then
        echo "ok $case_number - $1 needs $2"
    else
        echo "not ok $case_number - $1 may need $2, but needs $wrong"
    fi
}

only .libs/libtfm.so 'libc|libm|libdl|libpthread'
only .libs/libtfm-llm.so 'libtfm|libc|libm|libutf8proc|libjansson'
if test -f "$build/backends/opencl/.libs/opencl.so"; then
    only backends/opencl/.libs/opencl.so 'libc|libm|libpthread|libOpenCL|libclblast'
fi
if test -f "$build/backends/blas/.libs/blas.so"; then
    only backends/blas/.libs/blas.so 'libc|libm|libpthread|libopenblas'
fi
echo "1..$case_number"
