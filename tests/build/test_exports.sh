#!/bin/sh
# SPDX-License-Identifier: MIT
# The libraries export what the installed headers declare with TFM_API, all of it and nothing else; a
# backend exports its one table. Catches a function that was declared and forgotten, one that lost its
# TFM_API, and an internal name that leaked.
set -u
build=${TFM_TEST_BUILDDIR:-.} headers=${TFM_TEST_SRCDIR:-.}/lib/include/tfm
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
command -v nm >/dev/null || { echo 'nm not found: install the Debian package binutils'; exit 77; }
test -f "$build/.libs/libtfm.so" || { echo 'no shared libraries in this build'; exit 77; }

exported() { nm -D --defined-only "$1" | awk '{ print $NF }' | sed 's/@.*//' | sort; }

# Names of the functions that follow TFM_API in these headers, comments taken out.
declared() {
    for file; do
        sed -e 's,/\*.*\*/,,' -e '/\/\*/,/\*\//d' "$file"
    done | awk '
        /^TFM_API/ { line = "" ; on = 1 }
        on { line = line " " $0 }
        on && /;/ { if (match(line, /tfm_[a-z0-9_]+\(/)) print substr(line, RSTART, RLENGTH - 1); on = 0 }
    ' | sort -u
}

case_number=0
same() { # TEXT: $work/want against $work/have
    case_number=$((case_number + 1))
    if test -s "$work/want" && diff "$work/want" "$work/have" >"$work/diff"; then
        echo "ok $case_number - $1"
    else
        sed 's/^/# /' "$work/diff"
        echo "not ok $case_number - $1"
    fi
}

llm='bpe_train.h config.h convert.h export.h gguf.h gguf_write.h llm.h model.h safetensors.h sampler.h session.h tokenizer.h train_settings.h trainer.h'
for file in "$headers"/*.h; do
    case " $llm " in
        *" ${file##*/} "*) echo "$file" >>"$work/llm" ;;
        *) echo "$file" >>"$work/core" ;;
    esac
done

# shellcheck disable=SC2046
declared $(cat "$work/core") >"$work/want"
exported "$build/.libs/libtfm.so" >"$work/have"
same 'libtfm exports what its headers declare'

# shellcheck disable=SC2046
declared $(cat "$work/llm") >"$work/want"
exported "$build/.libs/libtfm-llm.so" >"$work/have"
same 'libtfm-llm exports what its headers declare'

for name in opencl blas; do
    test -f "$build/backends/$name/.libs/$name.so" || continue
    echo tfm_backend_v1 >"$work/want"
    exported "$build/backends/$name/.libs/$name.so" >"$work/have"
    same "$name.so exports its table and nothing else"
done
echo "1..$case_number"
