#!/bin/sh
# SPDX-License-Identifier: MIT
# `make install DESTDIR=` and `make uninstall`: every file has its place, no build path is in the
# library, the program finds its backends from another folder and through a symlink, a program compiles
# with what pkg-config says, and uninstall leaves no file behind. (Case A35; the search in the
# installed prefix itself is tested by `make installcheck`.)
set -u
source=${TFM_TEST_SRCDIR:-.} build=${TFM_TEST_BUILDDIR:-.}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
test -f "$build/.libs/libtfm.so" || { echo 'no shared libraries in this build'; exit 77; }
root=$work/root
unset MAKEFLAGS MAKELEVEL MFLAGS TFM_PLUGIN_PATH TFM_PLUGIN_TRIAL TFM_PLUGIN_TRIAL_HELPER

case_number=0
verdict() { # STATUS TEXT
    case_number=$((case_number + 1))
    if test "$1" -eq 0; then
        echo "ok $case_number - $2"
    else
        sed 's/^/# /' "$work/log"
        echo "not ok $case_number - $2"
    fi
}
variable() { sed -n "s/^$1 = //p" "$build/Makefile"; }
value() { # of a directory variable, expanded by make itself
    printf 'include Makefile\nprint-value:\n\t@echo $(%s)\n' "$1" |
        (cd "$build" && ${MAKE:-make} -s --no-print-directory -f - print-value)
}

(cd "$build" && ${MAKE:-make} --no-print-directory install DESTDIR="$root") >"$work/log" 2>&1
verdict $? 'make install DESTDIR='

bindir=$root$(value bindir) libdir=$root$(value libdir) plugindir=$root$(value pluginsdir)
: >"$work/log"
helper=$root$(value pkglibdir)/tfm-probe model=$root$(value pkgdatadir)/models/Austen-5M.Q8_0.gguf
for file in "$bindir/tfm" "$helper" "$model" "$libdir/libtfm.so" "$libdir/libtfm-llm.so" \
    "$root$(value includedir)/tfm/backend.h" "$root$(value includedir)/tfm/ops.def" \
    "$root$(value includedir)/tfm/opencl.h" \
    "$root$(value includedir)/tfm/llm.h" "$libdir/pkgconfig/tfm.pc" "$libdir/pkgconfig/tfm-llm.pc"; do
    test -f "$file" || echo "$file is missing" >>"$work/log"
done
for name in opencl blas; do
    if test -f "$build/backends/$name/$name.la" && ! test -f "$plugindir/$name.so"; then
        echo "$plugindir/$name.so is missing" >>"$work/log"
    fi
done
test -e "$bindir/run" && echo "$bindir/run belongs to the build tree only" >>"$work/log"
test ! -s "$work/log"
verdict $? 'every file has its place'

# Debug sections name the sources; what is loaded must not.
: >"$work/log"
for file in "$libdir/libtfm.so" "$libdir/libtfm-llm.so" "$bindir/tfm" "$helper"; do
    strip -o "$work/stripped" "$file" && grep -c -F -e "$build" "$work/stripped" >"$work/count"
    test "$(cat "$work/count")" = 0 || echo "$file names $build" >>"$work/log"
done
test ! -s "$work/log"
verdict $? 'no build path is in what is installed'

LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
ln -s "$bindir/tfm" "$work/link"
for program in "$bindir/tfm" "$work/link"; do
    (cd / && "$program" backends) >"$work/log" 2>&1 && grep -q '^reference' "$work/log" &&
        { ! test -f "$plugindir/opencl.so" || grep -q -F "$plugindir/opencl.so" "$work/log"; }
    verdict $? "${program##*/} backends, from /"
done

crash=$build/tests/plugins/.libs/crash_probe.so
if test -f "$crash"; then
    (cd / && "$bindir/tfm" backends --failed --plugin "$crash") >"$work/log" 2>&1 &&
        grep -q 'killed by signal 11' "$work/log"
    verdict $? 'it finds its helper, which tries a plugin that crashes'
fi

PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
compiler=$(variable CC) sanitizers=$(variable TFM_LDFLAGS | tr ' ' '\n' | grep sanitize | tr '\n' ' ')
# shellcheck disable=SC2046,SC2086
{
    $compiler $sanitizers -o "$work/program" "$source/docs/examples/three_layers.c" \
        $(pkg-config --cflags --libs tfm) && "$work/program" reference
} >"$work/log" 2>&1 && grep -q '^reference' "$work/log"
verdict $? 'a program compiles with tfm.pc and runs'
test "$root$(pkg-config --variable=plugindir tfm)" = "$plugindir" ||
    test "$(pkg-config --variable=plugindir tfm)" = "$plugindir"
verdict $? 'tfm.pc knows the folder of backends'

(cd "$build" && ${MAKE:-make} --no-print-directory uninstall DESTDIR="$root") >"$work/log" 2>&1
find "$root" ! -type d >>"$work/left"
test ! -s "$work/left" || cat "$work/left" >>"$work/log"
test ! -s "$work/left"
verdict $? 'make uninstall leaves no file behind'
echo "1..$case_number"
