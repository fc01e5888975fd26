#!/bin/sh
# SPDX-License-Identifier: MIT
# TFM_PROFILE: a timeline that is JSON with complete events, one a launch, a table that adds up, the same results
# with and without it, and a clear line when the file cannot be written. Catches events that are lost or not
# closed, half a file, times that belong to no launch.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
"$tfm" backends >"$out" 2>"$err"
grep -q '^opencl' "$out" || { echo 'the opencl backend is not there'; exit 77; }
TFM_BACKEND='opencl:Portable Computing Language'
TFM_THREADS=2
export TFM_BACKEND TFM_THREADS
toy toy.gguf
trace=$work/here/trace.json
# of the events of a trace: number, and how many have a pattern in their line
events() { grep -c '"ph":"X"' "$trace"; }
with() { grep '"ph":"X"' "$trace" | grep -c -e "$1"; }

ids=1$(seq 2 64 | sed 's/^/,/' | tr -d '\n')
call logits -m toy.gguf --ids "$ids"
cp "$out" "$work/without"
call_with "TFM_PROFILE=$trace" logits -m toy.gguf --ids "$ids"
test $code -eq 0 && cmp -s "$out" "$work/without"
verdict $? 'the results are those without it'
"$builddir/tests/tools/json_get" 'traceEvents.#' <"$trace" >"$work/all" &&
    test "$(cat "$work/all")" -eq "$(($(events) + $(grep -c '"ph":"M"' "$trace")))" && test "$(events)" -ge 20
verdict $? 'the timeline is JSON; every event is complete or a name'
# name, phase, place, time, length, layer, rows, parts, bytes, flop
shape='^,\?{"ph":"X","name":"[a-z0-9_+]\{1,\}","cat":"\(decode\|prefill\)","pid":[1-9][0-9]*,"tid":[1-9][0-9]*,"ts":[0-9]*\.[0-9]\{3\},"dur":[0-9]*\.[0-9]\{3\},"args":{"layer":"[a-z0-9_.]*","rows":64,"parts":[0-9]*,"bytes":[0-9]*,"flop":[0-9]*}},\?$'
test "$(with "$shape")" -eq "$(events)" && test "$(with '"cat":"prefill"')" -eq "$(events)"
verdict $? 'each event has all its members'
test "$(with '"layer":"blk.1.ffn.down"')" -ge 1 && test "$(with '"name":"rms_norm"')" -eq 5 && test "$(with '"name":"embedding"')" -eq 1
verdict $? 'launches belong to layers; each norm of two blocks and the last one is there once'
grep -o '"ts":[0-9.]*' "$trace" | cut -d : -f 2 | sort -g | head -n 1 | grep -q -x '0\.000'
verdict $? 'the timeline begins at 0'

# ---- the table -------------------------------------------------------------------------------------
grep -q 'limits [0-9.]* GB/s read, [0-9.]* GFLOP/s f32' "$err" && grep -q 'phase *kernel *calls *ms' "$err" &&
    awk '/ prefill | decode / { for (i = 1; i <= NF; i++) if ($i == "prefill" || $i == "decode") n += $(i + 2) } END { print n }' "$err" |
    grep -q -x "$(events)"
verdict $? 'the table counts every launch once'
call_with "TFM_PROFILE=$trace" logits -m toy.gguf --ids 5
test $code -eq 0 && test "$(with '"cat":"decode"')" -eq "$(events)" && grep -q '"rows":1,' "$trace"
verdict $? 'one row: decode'
# each phase is a launch; bytes of a projection are those of its weights and of a row in and out, all f32
test "$(with '"name":"norm+project_gate"')" -eq 2 && test "$(with '"name":"attend"')" -eq 2 &&
    test "$(with '"name":"project_add","cat":"decode".*"layer":"blk.1.ffn.down"')" -eq 1 &&
    test "$(with "\"layer\":\"blk.1.ffn.down\",.*\"bytes\":$((4 * (64 * 128 + 64 + 128))),\"flop\":$((2 * 64 * 128))}")" -eq 1
verdict $? 'few rows: phases by name and layer, with their bytes and operations'

call_with "TFM_PROFILE=$trace" perplexity -m toy.gguf --ids "$work/here/ids" -c 16 --against TFM_THREADS=1
test $code -eq 1 # no such file: nothing ran
verdict $? 'a run that fails'
echo "$ids" | tr , ' ' >ids
call_with "TFM_PROFILE=$trace" perplexity -m toy.gguf --ids ids -c 16 --against kv=f32
test $code -eq 0 && test "$(with '"pid":1,')" -eq "$(with '"pid":2,')" && test "$(grep -c 'limits ' "$err")" -eq 2 &&
    "$builddir/tests/tools/json_get" 'traceEvents.#' <"$trace" >/dev/null
verdict $? 'a device that is opened again stands behind the first in the same file'

# ---- files that cannot be written ------------------------------------------------------------------
rm -f "$trace"
call logits -m toy.gguf --ids 5
test $code -eq 0 && test ! -e "$trace" && test ! -s "$err"
verdict $? 'off: no file, no table'
call_with "TFM_PROFILE=$work/nowhere/trace.json" logits -m toy.gguf --ids 5
test $code -eq 0 && test "$(grep -c "TFM_PROFILE: cannot write $work/nowhere/trace.json: No such" "$err")" -eq 1
verdict $? 'a folder that is not there: one line, and the results all the same'
if test -c /dev/full; then
    call_with TFM_PROFILE=/dev/full logits -m toy.gguf --ids 5
    test $code -eq 0 && test "$(grep -c 'TFM_PROFILE: cannot write /dev/full: No space' "$err")" -eq 1 && test -c /dev/full
    verdict $? 'a full disk'
fi
# more than a mebibyte of events, and room for what the driver itself writes
echo old >"$trace"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do cat ids; done >many
(
    ulimit -f 2048
    trap '' XFSZ
    env "TFM_PROFILE=$trace" "$tfm" perplexity -m toy.gguf --ids many -c 64 -b 1 2>"$err" </dev/null | cat >"$out"
)
code=0
test "$(grep -c "TFM_PROFILE: cannot write $trace: File too large" "$err")" -eq 1 && grep -q -x old "$trace" &&
    test "$(find "$work/here" -name 'trace.json*' | wc -l)" -eq 1
verdict $? 'a file that fails half-way leaves the old one'
finish
