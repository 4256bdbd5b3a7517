#!/usr/bin/env bash
# Runs glibc's own tests of posix_spawn on libvspawn, through the adapter in crates/vspawn-capi/tests/glibc. Downloads the source package of
# Debian 12's glibc into a temporary directory, which is removed at the end; set GLIBC_SOURCE to use an unpacked source instead.
# Prints the result of every test. The exit status is 1 if one fails.
set -euo pipefail
cd "$(dirname "$0")/.."

# Tests that are not run, with the reason.
declare -A skipped=(
    [tst-spawn-static]="the same as tst-spawn, linked statically with glibc's own objects"
    [tst-spawn4-compat]="tests symbol versions of glibc before 2.15, which run a text without an interpreter line with a shell; libvspawn has none"
)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fetch() {
    scripts/suite-source.sh bookworm "$work" glibc
    (cd "$work" && tar xf glibc_*.orig.tar.xz --wildcards '*/posix/tst-*spawn*')
    echo "$work"/glibc-*/
}

source=${GLIBC_SOURCE:-$(fetch)}
cargo build -q -p vspawn-capi
library=$PWD/target/debug adapter=$PWD/crates/vspawn-capi/tests/glibc
mkdir "$work/lib"
ln -s "$library/libvspawn.so" "$work/lib/libvspawn.so"
ln -s "$library/libvspawn.so" "$work/lib/libvspawn.so.0"

status=0
for path in "$source"/posix/tst-*spawn*.c; do
    name=$(basename "$path" .c)
    if [ -n "${skipped[$name]:-}" ]; then
        echo "skipped  $name: ${skipped[$name]}"
        continue
    fi
    directory=$work/$name
    mkdir "$directory"
    if ! cc -std=gnu11 -D_GNU_SOURCE -w -I "$adapter" -I "$adapter/support" -I crates/vspawn-capi/include -o "$directory/test" \
        "$path" "$adapter/posix_spawn.c" -L "$work/lib" -lvspawn >"$directory/log" 2>&1; then
        echo "FAILED   $name does not compile"
        cat "$directory/log"
        status=1
        continue
    fi
    # As in glibc's makefile, tests that start themselves get their own command line as arguments.
    case $name in
    tst-spawn | tst-spawn5 | tst-spawn6) arguments=("$directory/test") ;;
    *) arguments=() ;;
    esac
    result=0
    # Needs setsid, because one test takes a controlling terminal.
    (cd "$directory" && LD_LIBRARY_PATH=$work/lib timeout 60 setsid --wait ./test "${arguments[@]}") >"$directory/log" 2>&1 </dev/null || result=$?
    case $result in
    0) echo "passed   $name" ;;
    77) echo "skipped  $name: $(tail -1 "$directory/log")" ;;
    *)
        echo "FAILED   $name: status $result"
        cat "$directory/log"
        status=1
        ;;
    esac
done
exit $status
