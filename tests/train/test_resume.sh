#!/bin/sh
# SPDX-License-Identifier: MIT
# Training that is interrupted on the reference: what two runs did the same is the same byte for byte, however often one of them
# was stopped, killed or out of room; and what does not belong together is refused with everything left as it was.
# TFM_TEST_MOMENTS: how often it is killed (50), TFM_TEST_SEED: which moments.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
. "$srcdir/tests/train/resume.sh"
TFM_BACKEND=reference
export TFM_BACKEND
cp "$srcdir/tests/golden/long.txt" text.txt
moments=${TFM_TEST_MOMENTS:-50}
steps=$((3 * moments + 20))
write_small $steps
half=$((steps / 4 * 2)) # even
arguments='--data text.txt --config small.json'
# facts FOLDER: every file with its checksum
facts() { (cd "$1" && find . -type f -exec cksum {} + | sort); }

# shellcheck disable=SC2086
{
    call train $arguments --out whole
    test $code -eq 0 && tidy whole && test "$(losses whole | wc -l)" -eq $steps
    verdict $? "$steps steps at once"
    call train $arguments --out twin --save-every 7
    test $code -eq 0 && same whole twin && tidy twin
    verdict $? 'another folder, more checkpoints: the same files'

    mkdir halves
    call train $arguments --out halves --resume --steps $half
    test $code -eq 0 && ! cmp -s whole/last.ckpt halves/last.ckpt
    verdict $? '--resume in an empty folder begins'
    cp -r halves half
    call train $arguments --out halves --resume
    test $code -eq 0 && grep -q "after step $half" "$err" && same whole halves && tidy halves
    verdict $? 'in two halves: the same files'

    # ---- other ways to the same steps, and other steps ----
    sed 's/"train": {/"train": {"recompute": true, "validate_every": 9, "sample_every": 11, /' small.json >often.json
    mkdir often
    call train --data text.txt --config often.json --out often --resume --steps $half
    test $code -eq 0 && call train $arguments --out often --resume && test $code -eq 0 &&
        cmp -s whole/last.ckpt often/last.ckpt
    verdict $? 'computed again, validated and sampled on the way: the same checkpoint'
    sed -e 's/"train": {/"train": {"compute": "bf16", /' small.json >bf16.json
    mkdir bf16-halves
    call train --data text.txt --config bf16.json --out bf16
    test $code -eq 0 && call train --data text.txt --config bf16.json --out bf16-halves --resume --steps $half
    test $code -eq 0 && call train --data text.txt --config bf16.json --out bf16-halves --resume
    test $code -eq 0 && same bf16 bf16-halves && ! cmp -s whole/last.ckpt bf16/last.ckpt
    verdict $? 'BF16 in two halves: the same files'
    head -n 12 text.txt >validation.txt
    mkdir validated-halves
    call train $arguments --validation validation.txt --out validated
    test $code -eq 0 && call train $arguments --validation validation.txt --out validated-halves --resume --steps $half
    test $code -eq 0 && call train $arguments --validation validation.txt --out validated-halves --resume
    test $code -eq 0 && same validated validated-halves && ! cmp -s whole/last.ckpt validated/last.ckpt
    verdict $? 'a text for validation, in two halves: the same files'
    mkdir asked
    "$kill_at" 10 1 0 asked "$tfm" train $arguments --out asked >"$out" 2>"$err" </dev/null
    code=$?
    test $code -eq 0 && same whole asked
    verdict $? 'SIGUSR1 before the first step does not end it'

    # ---- stopped ----
    mkdir stopped
    "$kill_at" 2 4 2000 stopped "$tfm" train $arguments --out stopped --save-every 3 >"$out" 2>"$err" </dev/null
    code=$?
    test $code -eq 130 && tidy stopped && test -f stopped/last.ckpt
    verdict $? 'Ctrl-C: the step is saved'
    done=$(losses stopped | wc -l | tr -d ' ')
    call train $arguments --out stopped --resume
    test $code -eq 0 && grep -q "after step $done" "$err" && same whole stopped
    verdict $? "and it goes on after step $done: the same files"
    kill_and_resume killed "$moments" whole $arguments && same whole killed && tidy killed
    verdict $? "kill -9 at $killed moments, $inside of them inside a save: the same files"

    # ---- a rate at which it goes to pieces ----
    sed -e 's/"rate": 1e-2/"rate": 100/' -e 's/"final_rate": 1e-3/"final_rate": 100, "weight_decay": 100/' \
        -e 's/"warmup": 5/"warmup": 0/' small.json >nan.json
    for resume in '' --resume; do
        call train --data text.txt --config nan.json --out nan --save-every 1 $resume
        test $code -eq 1 && grep -q 'step [0-9]*.* is not finite' "$err" && grep -q '"[a-z_.0-9:]*"' "$err" && tidy nan &&
            test ! -e nan/model.gguf && cp nan/last.ckpt "good$resume"
        verdict $? "a loss that is not finite${resume:+, once more}: the step and the tensor are named"
    done
    cmp -s good good--resume
    verdict $? 'and the last good checkpoint stays'

    # ---- two at once ----
    mkdir busy
    exec 9<busy
    flock 9
    call train $arguments --out busy
    failed_with 1 'another tfm train is at work in it' && test -z "$(ls -A busy)"
    verdict $? 'a folder in which another process trains is left alone'
    exec 9<&-

    # ---- damaged ----
    cp -r half damaged
    call train $arguments --out damaged --resume --steps $((half + 4)) --save-every 2
    size=$(wc -c <damaged/last.ckpt)
    cp damaged/last.ckpt good
    for how in missing short flipped; do
        rm -f damaged/last.ckpt
        test $how = short && head -c $((size - 100)) good >damaged/last.ckpt
        test $how = flipped && { head -c 2000 good; printf 'X'; tail -c +2002 good; } >damaged/last.ckpt
        cp damaged/previous.ckpt previous
        call train $arguments --out damaged --resume --steps $((half + 4))
        test $code -eq 0 && grep -q 'warning: damaged/last.ckpt: .*going on from damaged/previous.ckpt' "$err" &&
            grep -q "after step $((half + 2))" "$err" && cmp -s damaged/last.ckpt good
        verdict $? "last.ckpt $how: a warning, and on from the one before it"
        cp previous damaged/previous.ckpt
    done
    echo nonsense >damaged/last.ckpt
    echo nonsense >damaged/previous.ckpt
    facts damaged >before
    call train $arguments --out damaged --resume
    facts damaged >after
    failed_with 1 damaged/previous.ckpt && cmp -s before after
    verdict $? 'both damaged: refused, nothing touched'

    # ---- no room: a limit at which a write does a part and then fails ----
    cp -r half full
    for limit in 1000 $((size / 2)) $((size - 1)); do
        prlimit --fsize=$limit -- "$tfm" train --data half/data.tokens --config small.json --out full --resume \
            --steps $((half + 1)) >/dev/null 2>"$err" </dev/null
        code=$?
        : >"$out"
        test $code -eq 1 && grep -q 'cannot be written.*: File too large' "$err" && tidy full &&
            cmp -s full/last.ckpt half/last.ckpt
        verdict $? "room for files of $limit bytes: the last checkpoint is as it was"
    done
    grep -q 'full/last.ckpt: cannot be written: File too large; .* is as it was' "$err"
    verdict $? 'and that is told'
    # and a file system that is full
    if unshare -Urm true 2>/dev/null; then
        mkdir small
        cat >small.sh <<'END'
mount -t tmpfs -o size=$1 none small || exit 77
cp -r half/. small
shift
"$@" >out.small 2>err.small </dev/null
echo $? >code.small
ls -A small >left.small
cp small/last.ckpt small.ckpt
END
        unshare -Urm sh small.sh $((size * 3 / 2 + 65536)) "$tfm" train $arguments --out small --resume
        unmounted=$?
        test $unmounted -eq 77 || { code=$(cat code.small) && cp err.small "$err"; }
    else
        unmounted=77
    fi
    if test $unmounted -eq 77; then
        case_number=$((case_number + 1))
        echo "ok $case_number - a full disk # SKIP no file system can be mounted here"
    else
        test "$code" -eq 1 && grep -q 'small/last.ckpt: cannot be written: No space left on device' "$err" &&
            ! grep -q '^[.]tfm-' left.small && cmp -s small.ckpt half/last.ckpt
        verdict $? 'a full disk: told, and the last checkpoint is as it was'
    fi
    call train $arguments --out full --resume
    test $code -eq 0 && same whole full
    verdict $? 'with room again it goes on: the same files'

    # ---- what does not belong together ----
    sed 's/"rate": 1e-2/"rate": 2e-2/' small.json >rate.json
    sed 's/"ffn_width": 32/"ffn_width": 48/' small.json >width.json
    sed 's/"length": 16/"length": 8/' small.json >length.json
    sed 's/"eps": 1e-5/"eps": 1e-6/' small.json >eps.json
    sed 's/the/teh/' text.txt >other.txt
    call train-tokenizer --data other.txt --vocab 300 --out other.gguf
    call train --data other.txt --tokenizer half/tokenizer.gguf --config small.json --out other --steps 1
    mv other/data.tokens other.tokens
    cp -r half kept
    facts kept >before
    while IFS='|' read -r words more; do
        call train --out kept --resume $more
        facts kept >after
        result=$code
        test "$result" -eq 1 && test "$(lines "$err")" -le 3 && grep -q -e "$words" "$err" && cmp -s before after
        verdict $? "refused, nothing touched: $more"
    done <<END
rate.*0.01.*0.02|--data text.txt --config rate.json
32.*48|--data text.txt --config width.json
length.*16.*8|--data text.txt --config length.json
eps|--data text.txt --config eps.json
data.tokens.*another text|--data other.txt --config small.json
was made with .text|--data other.tokens --config small.json
windows: 109.*windows: 115|--data text.txt --config small.json --validation half/data.tokens
tokenizer|--data text.txt --config small.json --tokenizer other.gguf
END
    call train --out kept $arguments
    facts kept >after
    failed_with 1 '--resume' && cmp -s before after
    verdict $? 'without --resume nothing is begun over it'
}
finish
