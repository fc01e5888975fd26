#!/bin/sh
# SPDX-License-Identifier: MIT
# configure on machines that lack something: it stops and names the Debian package, or builds without.
# (Case A53.) pkg-config is a script here that denies the modules in $WITHOUT.
set -u
source=${TFM_TEST_SRCDIR:-.}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
real=$(command -v pkg-config) || { echo 'pkg-config not found'; exit 77; }
unset MAKEFLAGS MAKELEVEL MFLAGS CONFIG_SITE

# A copy of what configure reads, since it refuses to run for a source tree that is itself configured.
mkdir -p "$work/source/lib/include/tfm" "$work/build"
cp -R "$source/configure" "$source/build-aux" "$work/source"
cp "$source/lib/include/tfm/backend.h" "$work/source/lib/include/tfm"

cat >"$work/pkg-config" <<SCRIPT
#!/bin/sh
for argument; do
    for module in \$WITHOUT; do
        case \$argument in "\$module" | "\$module "*) exit 1 ;; esac
    done
done
exec $real "\$@"
SCRIPT
chmod +x "$work/pkg-config"
# The headers of OpenCL and CLBlast in a folder of their own, as far as configure looks.
mkdir -p "$work/prefix/include/CL"
echo 'typedef int cl_int;' >"$work/prefix/include/CL/cl.h"
echo '#include <CL/cl.h>' >"$work/prefix/include/clblast_c.h"

cd "$work/build" || exit 99
../source/configure -q --no-create --cache-file=../cache --without-opencl --without-check \
    PKG_CONFIG="$work/pkg-config" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
# Only what does not depend on the machine's packages is worth keeping.
sed -i -E '/ac_cv_(env|header_CL|header_clblast)|pkg_cv|WITHOUT|PKG_CONFIG/d' "$work/cache"

number=0
# try TEXT WITHOUT STATUS PATTERN [ARGUMENT...]: PATTERN must be in what configure prints
try() {
    number=$((number + 1))
    text=$1 without=$2 want=$3 pattern=$4
    shift 4
    cp "$work/cache" "$work/cache.used"
    WITHOUT=$without ../source/configure --no-create --cache-file="$work/cache.used" \
        PKG_CONFIG="$work/pkg-config" "$@" >"$work/log" 2>&1
    status=$?
    test $status -ne 0 && status=1
    if test $status -eq "$want" && grep -q -E -e "$pattern" "$work/log"; then
        echo "ok $number - $text"
    else
        tail -n 5 "$work/log" | sed 's/^/# /'
        echo "not ok $number - $text (exit code $status)"
    fi
}

try 'no PCRE2' libpcre2-8 1 'Debian package libpcre2-dev, or configure --without-check' --without-opencl
try 'no utf8proc' libutf8proc 1 'Debian package libutf8proc-dev' --without-opencl --without-check
try 'no jansson' jansson 1 'Debian package libjansson-dev' --without-opencl --without-check
try 'no Check' check 1 'Debian package check, or configure --without-check' --without-opencl
try 'no OpenCL loader' OpenCL 1 'Debian package ocl-icd-opencl-dev, or configure --without-opencl' --without-check
try 'no OpenCL headers' '' 1 'Debian package opencl-headers, or configure --without-opencl' --without-check \
    ac_cv_header_CL_cl_h=no OPENCL_CFLAGS=-DX OPENCL_LIBS=-lOpenCL CLBLAST_CFLAGS=-DX CLBLAST_LIBS=-lclblast
try 'no CLBlast' clblast 1 'Debian package libclblast-dev, or configure --without-opencl' --without-check \
    OPENCL_CFLAGS=-DX OPENCL_LIBS=-lOpenCL
try 'no CLBlast header' '' 1 'Debian package libclblast-dev, or configure --without-opencl' --without-check \
    ac_cv_header_clblast_c_h=no "OPENCL_CFLAGS=-I$work/prefix/include" OPENCL_LIBS=-lOpenCL \
    CLBLAST_CFLAGS=-DX CLBLAST_LIBS=-lclblast
try 'headers in a prefix, no .pc files' 'OpenCL clblast' 0 'backend opencl +yes' --without-check \
    "OPENCL_CFLAGS=-I$work/prefix/include" OPENCL_LIBS=-lOpenCL \
    "CLBLAST_CFLAGS=-I$work/prefix/include" CLBLAST_LIBS=-lclblast
try '--without-opencl with neither' 'OpenCL clblast' 0 'backend opencl +no' --without-opencl --without-check
try '--with-opencl and --disable-shared' '' 1 'loadable module' --with-opencl --disable-shared --without-check
try '--disable-shared alone' 'OpenCL clblast' 0 'backend opencl +no' --disable-shared --without-check
echo "1..$number"
