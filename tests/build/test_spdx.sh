#!/bin/sh
# SPDX-License-Identifier: MIT
# Every file that somebody wrote says its license in its first two lines.
set -u
cd "${TFM_TEST_SRCDIR:-.}" || exit 99
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

{
    find lib backends kernels tests docs m4 -type f \
        \( -name '*.[ch]' -o -name '*.def' -o -name '*.cl' -o -name '*.sh' -o -name '*.awk' \
        -o -name '*.py' -o -name '*.am' \) ! -path '*/.*' ! -path m4/libtool.m4 ! -path 'm4/lt*' \
        ! -path kernels/embedded.c
    for file in configure.ac Makefile.am bootstrap quickstart run.in .ci/run m4/tfm.m4; do
        echo "$file"
    done
} >"$work/files"
while read -r file; do
    head -n 2 "$file" | grep -q -F 'SPDX-License-Identifier: MIT' || echo "# $file"
done <"$work/files" >"$work/without"
cat "$work/without"
test "$(wc -l <"$work/files")" -gt 50 || { echo '# only a few files were found'; echo x >>"$work/without"; }
if test -s "$work/without"; then
    echo 'not ok 1 - each source has its SPDX line'
else
    echo 'ok 1 - each source has its SPDX line'
fi
echo '1..1'
