#!/bin/sh
# SPDX-License-Identifier: MIT
# What `make installcheck` does with docs/examples/backend: builds it as a stranger would, from a copy, with
# nothing but the installed library, then lists it, checks it, and runs a program on it. Catches a header
# that is not installed, a wrong pkg-config variable, an example that lags behind the ABI.
# installcheck_backend.sh SOURCE TFM LIBDIR DESTDIR CC FLAGS
set -u
source=$1 tfm=$2 libdir=$3 destdir=$4 compiler=$5 flags=$6
test -f "$destdir$libdir/libtfm.so" || { echo 'installcheck: no shared library, no modules'; exit 0; }
for tool in autoreconf automake libtoolize pkg-config; do
    command -v $tool >/dev/null || { echo "installcheck: $tool not found, the example is not built"; exit 0; }
done
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
# what was given to `make installcheck` is not meant for the make of the example
unset TFM_PLUGIN_PATH TFM_PLUGIN_TRIAL TFM_PLUGIN_TRIAL_HELPER TFM_BACKEND TFM_STRICT MAKEFLAGS MAKELEVEL MFLAGS CONFIG_SITE DESTDIR prefix
PKG_CONFIG_PATH=$destdir$libdir/pkgconfig POCL_CACHE_DIR=$work
export PKG_CONFIG_PATH POCL_CACHE_DIR
test -z "$destdir" || { PKG_CONFIG_SYSROOT_DIR=$destdir; export PKG_CONFIG_SYSROOT_DIR; }
LD_LIBRARY_PATH=$destdir$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

step() { # TEXT COMMAND...
    text=$1
    shift
    if ! "$@" >"$work/log" 2>&1; then
        tail -n 30 "$work/log" >&2
        echo "installcheck: example backend: $text: failed" >&2
        exit 1
    fi
    echo "installcheck: example backend: $text"
}

mkdir "$work/example" && cp -R "$source/docs/examples/backend/." "$work/example" || exit 99
chmod -R u+w "$work/example"
cd "$work/example" || exit 99
step 'autoreconf' autoreconf --install
step 'configure' ./configure --with-plugindir="$work/plugins" CC="$compiler" CFLAGS="$flags"
step 'make' make
step 'make install' make install
# what it was told before --with-plugindir: the folder that the library itself looks into
step 'pkg-config knows plugindir' test -d "$(pkg-config --variable=plugindir tfm)" -o \
    -d "$destdir$(pkg-config --variable=plugindir tfm)"

TFM_PLUGIN_PATH=$work/plugins
export TFM_PLUGIN_PATH
step 'tfm backends lists it' sh -c "'$tfm' backends | grep '^example  *1.0  *usable'"
step 'make check' make check TFM_PROGRAM="$tfm"
step 'a program is built' "$compiler" $flags -o "$work/three_layers" "$source/docs/examples/three_layers.c" \
    $(pkg-config --cflags --libs tfm)
step 'a program runs on it' sh -c "'$work/three_layers' reference example |
    awk '{ \$1 = \"\" } NR == 1 { first = \$0 } { print } \$0 != first { wrong = 1 } END { exit wrong || NR != 2 }'"
