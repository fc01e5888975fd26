#!/bin/sh
# SPDX-License-Identifier: MIT
# All that is to be measured and checked where a real GPU is at hand, in one go: builds the tree, runs the rows of
# docs/portability.md for the device, times the ops and a model on it, and keeps every answer in a folder. A step
# that fails is noted, and the next one runs.
set -u
usage='usage: tests/portability/gpu.sh [-d DEVICE] [-m MODEL] OUT [BUILD]

       tests/portability/gpu.sh results                      the GPU that auto takes; builds results/build
       tests/portability/gpu.sh -d opencl:0 results b        that device, the built tree b

OUT gets summary.txt, what each step printed, and device.md, the rows for docs/portability.md.
MODEL: a GGUF file (models/SmolLM2-135M-Instruct.Q4_1.gguf, if it is there). Exit code 1 when a step failed.'
device='' model=''
while getopts d:m:h option; do
    case $option in
        d) device=$OPTARG ;;
        m) model=$OPTARG ;;
        h) echo "$usage"; exit 0 ;;
        *) echo "$usage" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
test $# -ge 1 || { echo "$usage" >&2; exit 2; }
source_tree=$(cd "$(dirname "$0")/../.." && pwd) || exit 2
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 2
test -n "$model" || model=$source_tree/models/SmolLM2-135M-Instruct.Q4_1.gguf
summary=$out/summary.txt
status=0

say() { echo "$*" | tee -a "$summary"; }

# step NAME COMMAND...: its output in OUT/NAME.txt, its last words in the summary
step() {
    name=$1
    shift
    begun=$(date +%s)
    "$@" >"$out/$name.txt" 2>"$out/$name.err" </dev/null
    code=$?
    say "$name: exit code $code, $(($(date +%s) - begun)) s"
    test $code -eq 0 || { status=1; tail -n 3 "$out/$name.err" >>"$summary"; }
    return $code
}

: >"$summary"
say "commit $(git -C "$source_tree" rev-parse --short=10 HEAD 2>/dev/null || echo unknown), $(uname -sm), $(date -u +%Y-%m-%dT%H:%MZ)"

build_tree() {
    test -x "$source_tree/configure" || (cd "$source_tree" && ./bootstrap) || return 1
    mkdir -p "$out/build" && cd "$out/build" && "$source_tree/configure" --quiet && make -s -j "$(nproc)"
}
if test $# -ge 2; then
    build=$(cd "$2" && pwd) || exit 2
else
    build=$out/build
    (step build build_tree) || { say 'there is nothing to run'; exit 1; }
fi
tfm=$build/tfm
export TFM_PLUGIN_PATH="$build/backends/opencl/.libs"

step devices "$tfm" devices
if test -z "$device"; then
    device=$("$tfm" devices --json 2>/dev/null | python3 -c '
import json, sys
print(next((d["device"] for d in json.load(sys.stdin) if d["backend"] == "opencl" and d["kind"] != "cpu"), ""))')
    test -n "$device" || { say 'no GPU or accelerator here; -d names another device'; exit 1; }
fi
say "device: $(grep "^$device " "$out/devices.txt")"
export TFM_PORTABILITY_DEVICE="$device"
step doctor "$tfm" doctor --backend "$device"
step device sh "$source_tree/tests/portability/table.sh" "$build" device-group device-wide
for shape in group wide; do
    row=$build/portability/rows/device-$shape.md
    test -e "$row" && cat "$row"
done >"$out/device.md"
cat "$out/device.md" >>"$summary"
step bench-ops "$tfm" bench-ops --backend "$device"
if test -e "$model"; then
    for shape in auto group wide; do
        step "bench-$shape" env TFM_OPENCL_SHAPE=$shape "$tfm" bench -m "$model" --backend "$device"
    done
    step run "$tfm" run -v -m "$model" --backend "$device" -n 32 --temp 0 -p 'Once upon a time'
    step profile env TFM_PROFILE="$out/profile.json" "$tfm" run -m "$model" --backend "$device" -n 16 --temp 0 -p 'Once upon a time'
else
    say "bench: not run: $model is not there (-m names a model)"
fi
say "exit code $status"
exit $status
