#!/bin/sh
# SPDX-License-Identifier: MIT
# The kernel cache of PoCL, shared (case A40) and damaged: eight programs that start at once with an empty one print the
# same text, and so does one that finds a file of it cut short, emptied, zeroed or changed. Without the
# check of backends/opencl/pocl_files.c PoCL aborts on most of these.
. "${TFM_TEST_SRCDIR:-.}/tests/tools/common.sh"
toy toy.gguf
TFM_MODEL=$work/here/toy.gguf
export TFM_MODEL
unset XDG_CACHE_HOME TFM_OPENCL_SHAPE
# more rows than phases take, and too few for matrix products: kernels that are quick to build
speak() {
    "$tfm" run --backend 'opencl:Portable Computing Language' -n 8 -c 32 -p 'Hello, who are you there?' </dev/null
}
if ! speak >"$work/want" 2>"$err"; then
    echo "1..0 # SKIP opencl is not usable here: $(cat "$err")"
    exit 77
fi

# ---- eight at once ----
POCL_CACHE_DIR=$work/cold
export POCL_CACHE_DIR
mkdir "$work/cold"
others=
for i in 1 2 3 4 5 6 7 8; do
    (speak >"$work/out$i" 2>"$work/err$i"; echo $? >"$work/code$i") &
    others="$others $!"
done
wait $others
wrong=
for i in 1 2 3 4 5 6 7 8; do
    if test "$(cat "$work/code$i")" != 0 || ! cmp -s "$work/out$i" "$work/want" ||
        test "$(lines "$work/err$i")" -ne 1; then
        wrong="$wrong $i"
        cp "$work/out$i" "$out"
        cp "$work/err$i" "$err"
    fi
done
test -z "$wrong"
verdict $? "eight processes with an empty cache: the same text${wrong:+, not from$wrong}"

# ---- damage ----
# Each program has its sums; those of the kernel's files are in them.
sums=$(find "$work/cold" -name tfm-sums | wc -l)
test "$sums" -ge 2 && find "$work/cold" -name tfm-sums -exec cat {} + | grep 'tfm_run_linear\.so$' >"$out"
verdict $? 'what was built is noted'

# damage FILE HOW: writes into the file itself, as a disk does
damage() {
    bytes=$(wc -c <"$1")
    case $2 in
    emptied) : >"$1" ;;
    cut*) head -c $((bytes * ${2#cut} / 100)) "$1" >"$work/piece" && cat "$work/piece" >"$1" ;;
    zeroed) head -c "$bytes" /dev/zero | dd of="$1" conv=notrunc status=none ;;
    changed) printf 'tfm' | dd of="$1" bs=1 seek=$((bytes / 3)) conv=notrunc status=none ;;
    esac
}
# told N: the text is right, and N lines say that something was damaged
told() {
    test $code -eq 0 && cmp -s "$out" "$work/want" &&
        test "$(grep -c 'kernel cache .* was damaged' "$err")" -eq "$1" &&
        test "$(lines "$err")" -eq $((1 + $1))
}
again() {
    speak >"$out" 2>"$err"
    code=$?
}
# Of the program that is the quickest to build: of_linear PATTERN
of_linear() {
    file=$(find "$work/cache" -name tfm_run_linear.so)
    echo "${file%/tfm_run_linear/*}"/$1
}
POCL_CACHE_DIR=$work/cache
for name in program.bc tfm_run_linear/*/tfm_run_linear.so; do
    for how in emptied cut50 cut99 zeroed changed; do
        rm -rf "$work/cache"
        cp -R "$work/cold" "$work/cache"
        # a copy is other files, of which only what their headers say is known until they were used
        test $how != changed || again
        damage "$(of_linear "$name")" $how
        again
        told 1
        verdict $? "${name##*/} $how: built anew"
    done
done
again
told 0
verdict $? 'nothing is said the next time'

# The sums themselves: not trusted, not in the way.
for file in $(find "$work/cache" -name tfm-sums); do
    damage "$file" changed
done
again
told 0
verdict $? 'damaged sums: ignored'

# ---- large caches ----
# A start reads the files of its own programs, however many others there are: a link tells which are its own.
again
again
links=$(find "$work/cache" -maxdepth 1 -name 'tfm-*' -type l | wc -l)
linear=$(of_linear .)
linear=${linear%/.}
test "$links" -ge 2 && find "$work/cache" -maxdepth 1 -type l -exec readlink {} + >"$out" &&
    grep -q -x "${linear#"$work/cache/"}" "$out"
verdict $? 'the folders of its programs are known'
find "$work/cache" -maxdepth 1 -type l -exec ls -l --full-time {} + >"$work/links"
stranger=$work/cache/AA/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
mkdir -p "${stranger%/*}"
cp -R "$linear" "$stranger"
damage "$stranger/program.bc" emptied
again
told 0 && test -d "$stranger"
verdict $? 'a damaged program that this one does not use is not looked at'
find "$work/cache" -maxdepth 1 -type l -exec ls -l --full-time {} + >"$work/links2"
cmp "$work/links" "$work/links2"
verdict $? 'known folders are not searched again'
find "$work/cache" -maxdepth 1 -type l -exec rm {} +
again
told 1 && ! test -d "$stranger"
verdict $? 'when it is not known which are its own, all are looked at'
# as after an update of PoCL: they lead to what is no longer used
cp -R "$linear" "$stranger"
for link in $(find "$work/cache" -maxdepth 1 -type l); do
    ln -s -f "${stranger#"$work/cache/"}" "$link.new" && mv "$link.new" "$link"
done
again
told 0 && test "$(find "$work/cache" -maxdepth 1 -type l -exec readlink {} + | grep -c AAAAAAAA)" -eq 0 &&
    find "$work/cache" -maxdepth 1 -type l -exec readlink {} + | grep -q -x "${linear#"$work/cache/"}"
verdict $? 'links that lead elsewhere are made anew'
damage "$linear/program.bc" cut50
again
told 1
verdict $? 'and then guard the right one'

# A process that holds the lock, and is stopped, does not keep others from starting.
(
    exec 9>"$work/cache/tfm-lock"
    flock 9
    exec sleep 300
) &
holder=$!
for i in 1 2 3 4 5 6 7 8 9 10; do
    (
        exec 9>"$work/cache/tfm-lock"
        flock -n 9
    ) || break
    sleep 1
done
timeout 60 "$tfm" run --backend 'opencl:Portable Computing Language' -n 8 -c 32 -p 'Hello, who are you there?' \
    </dev/null >"$out" 2>"$err"
code=$?
kill -0 $holder && told 0
verdict $? 'nobody waits for a process that holds the lock'
kill $holder

# Another program's files are not touched.
mkdir -p "$work/cache/notes" && echo text >"$work/cache/notes/some.so"
again
told 0 && test -s "$work/cache/notes/some.so"
verdict $? 'what PoCL did not name is left alone'
finish
