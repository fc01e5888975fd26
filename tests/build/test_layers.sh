#!/bin/sh
# SPDX-License-Identifier: MIT
# The rooms include downwards only: tools -> llm -> {nn, train} -> ops -> core -> tfm/backend.h <- backends
# (docs/design.md, section 2). Catches a call around the layers, and an OpenCL or text library that
# reaches into a room that must do without.
set -u
root=${TFM_TEST_SRCDIR:-.}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# What a room may include, beside the headers of the C library: extended regular expressions.
core_api='tfm/(attrs\.def|backend\.h|device\.h|doctor\.h|dtype\.h|dtypes\.def|grad\.h|graph\.h|op\.h|ops\.def|plan\.h|status\.def|status\.h|tune\.h|uses\.def|weights\.h)'
nn_api='tfm/(batch|cache|init|nn|positions)\.h|tfm/nn_kinds\.def'
train_api='tfm/(checkpoint|dataset|optimizer|schedule)\.h'
plugin_api='tfm/(attrs\.def|backend\.h|doctor\.h|dtype\.h|dtypes\.def|op\.h|ops\.def|status\.def|status\.h|tune\.h)'
checked='lib/core/(checked|little_endian|map|save)\.h'
allowed() {
    case $1 in
        lib/include/tfm/bpe_train.h | lib/include/tfm/config.h | lib/include/tfm/convert.h | lib/include/tfm/export.h | \
            lib/include/tfm/gguf_write.h | lib/include/tfm/train_settings.h | lib/include/tfm/gguf.h | lib/include/tfm/llm.h | lib/include/tfm/model.h | \
            lib/include/tfm/safetensors.h | lib/include/tfm/sampler.h | \
            lib/include/tfm/session.h | lib/include/tfm/tokenizer.h | lib/include/tfm/trainer.h)
            echo 'tfm/.*' ;;
        lib/include/tfm/tfm.h | lib/include/tfm/cache.h | lib/include/tfm/nn.h | \
            lib/include/tfm/positions.h)
            echo "$core_api|$nn_api|$train_api" ;;
        lib/include/tfm/opencl.h) echo 'CL/cl\.h|tfm/(device|plan)\.h' ;;
        lib/include/tfm/backend.h) echo 'tfm/(attrs\.def|dtype\.h|dtypes\.def|op\.h|ops\.def|status\.def|status\.h)' ;;
        lib/include/tfm/*) echo "$core_api" ;;
        lib/core/version.c) echo 'tfm/tfm\.h|config\.h' ;;
        lib/core/*) echo "$core_api|lib/core/.*" ;;
        lib/ops/*) echo "$core_api|lib/ops/.*|lib/core/(rule|checked)\.h" ;;
        lib/nn/*) echo "$core_api|$nn_api|lib/nn/.*|lib/core/(alloc|checked)\.h" ;;
        lib/train/*) echo "$core_api|$nn_api|$train_api|lib/train/.*|$checked" ;;
        lib/llm/*) echo "tfm/.*|lib/llm/.*|$checked|jansson\.h|utf8proc\.h" ;;
        lib/probe/*) echo "$core_api|lib/core/.*|lib/probe/.*" ;;
        lib/check/*) echo "$core_api|lib/check/.*|$checked" ;;
        lib/tools/*) echo "tfm/.*|lib/tools/.*|lib/check/check\.h|$checked|config\.h|jansson\.h" ;;
        backends/reference/*) echo "$plugin_api|backends/reference/.*|$checked|config\.h" ;;
        backends/opencl/*) echo "$plugin_api|tfm/opencl\.h|backends/opencl/.*|kernels/.*|$checked|config\.h|CL/.*|clblast_c\.h" ;;
        backends/blas/*) echo "$plugin_api|backends/blas/.*|$checked|config\.h|cblas\.h" ;;
        kernels/*) echo '(kernels/)?[a-z0-9_]+\.(h|cl)' ;;
        *) echo 'nothing' ;;
    esac
}

# Headers of the C library.
libc='sys/.*|(assert|ctype|dirent|dlfcn|errno|fcntl|float|ftw|getopt|inttypes|limits|link|locale|malloc|math|poll|pthread|sched|signal|spawn|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|strings|termios|time|unistd|wchar)\.h'

# Prints one line a wrong include below the root that is given.
wrong_includes() {
    (
        cd "$1" || exit 1
        find lib backends kernels -type f \( -name '*.[ch]' -o -name '*.cl' -o -name '*.def' \) |
            sort | while read -r file; do
            sed -n -E 's/^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]*)[>"].*/\1/p' "$file" |
                grep -v -x -E "$libc|$(allowed "$file")" | sed "s,^,$file includes ,"
        done
    )
}

case_number=0
verdict() { # STATUS TEXT
    case_number=$((case_number + 1))
    if test "$1" -eq 0; then echo "ok $case_number - $2"; else echo "not ok $case_number - $2"; fi
}

wrong_includes "$root" >"$work/found"
sed 's/^/# /' "$work/found"
test ! -s "$work/found"
verdict $? 'every include goes down the layers'

# The same check must see each of these.
while read -r file include; do
    rm -rf "$work/bad"
    mkdir -p "$work/bad/lib" "$work/bad/backends" "$work/bad/kernels" "$work/bad/${file%/*}"
    echo "#include $include" >"$work/bad/$file"
    wrong_includes "$work/bad" | grep -q -F "$file includes"
    verdict $? "$include in $file is seen"
done <<'BAD'
lib/core/x.c <tfm/nn.h>
lib/core/x.c "backends/reference/reference.h"
lib/core/x.c "lib/ops/refuse.h"
lib/ops/x.c <tfm/nn.h>
lib/ops/x.c "lib/core/registry.h"
lib/nn/x.c <tfm/model.h>
lib/nn/x.c <tfm/dataset.h>
lib/nn/x.c <tfm/checkpoint.h>
lib/train/x.c <tfm/tokenizer.h>
lib/train/x.c "lib/core/registry.h"
lib/llm/x.c "lib/core/alloc.h"
lib/core/x.c <jansson.h>
lib/check/x.c "lib/core/registry.h"
lib/check/x.c <check.h>
lib/tools/x.c "lib/check/drive.h"
lib/llm/x.c <pcre2.h>
lib/tools/x.c "lib/llm/text.h"
lib/tools/x.c <CL/cl.h>
backends/reference/x.c <tfm/graph.h>
backends/opencl/x.c "lib/core/alloc.h"
backends/blas/x.c "backends/reference/dot.h"
kernels/x.cl "backends/opencl/device.h"
lib/include/tfm/backend.h <tfm/device.h>
BAD
echo "1..$case_number"
