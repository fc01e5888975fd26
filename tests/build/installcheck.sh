#!/bin/sh
# SPDX-License-Identifier: MIT
# What `make installcheck` runs on the installed program: with nothing in the environment, from / and
# through a symlink, it finds the backends of its own prefix. installcheck.sh TFM PLUGINDIR DESTDIR LIBDIR
set -u
tfm=$1 plugindir=$2 destdir=$3 libdir=$4
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
unset TFM_PLUGIN_PATH TFM_PLUGIN_TRIAL TFM_PLUGIN_TRIAL_HELPER TFM_BACKEND TFM_STRICT TFM_KERNEL_PATH LD_LIBRARY_PATH
POCL_CACHE_DIR=$work
export POCL_CACHE_DIR
# under DESTDIR the libraries do not lie where the program was told to look
test -z "$destdir" || { LD_LIBRARY_PATH=$destdir$libdir; export LD_LIBRARY_PATH; }
ln -s "$tfm" "$work/link"
for program in "$tfm" "$work/link"; do
    (cd / && "$program" backends) >"$work/out" || { echo "$program backends failed" >&2; exit 1; }
    for name in opencl blas; do
        if test -f "$plugindir/$name.so" && ! grep -q -F "$plugindir/$name.so" "$work/out"; then
            cat "$work/out" >&2
            echo "$program backends does not show $plugindir/$name.so" >&2
            exit 1
        fi
    done
done
