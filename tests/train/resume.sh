# SPDX-License-Identifier: MIT
# Sourced after common.sh by the tests that interrupt `tfm train`: a small text and model, a folder beside another, and
# kills at moments that a seed decides.
kill_at=$builddir/tests/train/kill_at
tiny=$srcdir/tests/train/data/tiny.json
test -x "$kill_at" || { echo "$kill_at is not built" >&2; exit 99; }

# A model so small that starting it is most of the work: one layer, width 16, and as many steps as are wanted.
write_small() { # STEPS
    cat >small.json <<END
{"vocab": 300, "context": 16, "width": 16, "layers": 1, "heads": 2, "kv_heads": 1, "ffn_width": 32, "eps": 1e-5, "tied": true,
 "train": {"length": 16, "sequences": 2, "accumulate": 2, "steps": $1, "rate": 1e-2, "final_rate": 1e-3, "warmup": 5}}
END
}

# same FOLDER FOLDER: the same checkpoint, byte for byte, the same model, and a line of metrics for the same steps with the
# same losses
same() {
    cmp "$1/last.ckpt" "$2/last.ckpt" && cmp "$1/model.gguf" "$2/model.gguf" &&
        losses "$1" >"$work/one" && losses "$2" >"$work/two" && cmp "$work/one" "$work/two"
}
losses() { sed -n 's/.*"step": *\([0-9]*\).*"loss": *\([^,}]*\).*/\1 \2/p' "$1/metrics.jsonl"; }
# No temporary file in a folder.
tidy() { test -z "$(find "$1" -name '.tfm-*')"; }

# The next number below $1, the same ones in every run.
random=${TFM_TEST_SEED:-1}
draw() {
    random=$(((random * 1103515245 + 12345) % 2147483648))
    drawn=$((random / 65536 % $1))
}

# kill_and_resume FOLDER MOMENTS WHOLE ARGUMENT...: kill -9 at so many moments, a third of them inside a save, then on to the end.
# A run that was through before its moment has to be the same as WHOLE, and a new one begins. In $killed, how many were killed, in
# $inside, how many of them left a save half done: how fast the machine is must not decide whether there are enough.
kill_and_resume() {
    folder=$1 moments=$2 whole=$3 killed=0 inside=0 tries=0
    shift 3
    mkdir -p "$folder"
    while test $killed -lt "$moments" || test $((3 * inside)) -lt "$moments"; do
        tries=$((tries + 1))
        test $tries -le $((10 * moments)) || return 1
        if test $((3 * inside)) -le $killed; then
            draw 3
            saves=$((drawn + 1)) delay=0 # as soon as the temporary file is there
        else
            draw 3
            saves=$drawn
            draw 40000
            delay=$drawn # from the start, or from a save on: in a step, in the next save, anywhere
        fi
        before=$(find "$folder" -name '.tfm-*')
        "$kill_at" 9 $saves "$delay" "$folder" "$tfm" train "$@" --out "$folder" --resume --save-every 1 \
            >"$out" 2>"$err" </dev/null
        code=$?
        test $code -eq 0 || return 1
        if ! grep -q '^killed$' "$out"; then
            same "$whole" "$folder" && tidy "$folder" || return 1
            rm -rf "$folder"
            mkdir "$folder"
            continue
        fi
        killed=$((killed + 1))
        # the next process takes away what the last one left, as soon as it saves
        after=$(find "$folder" -name '.tfm-*')
        if test -n "$after" && test "$after" != "$before"; then inside=$((inside + 1)); fi
    done
    call train "$@" --out "$folder" --resume
    test $code -eq 0
}
