#!/usr/bin/env bash
# Runs the tests that launch much of CPython and PHP plain and under `spawnscope accel`, and compares the result of each test:
#   accel-suites.sh [PREFIX...]        PREFIX is what a command is started with: target/release/spawnscope accel -- if none is given
# CPython's are test_subprocess, test_os, test_popen and test_posix of Debian 12's libpython3.11-testsuite; PHP's are those of its source that
# call exec, system, passthru, popen or proc_open. Packages and sources are unpacked into target/held-out or $HELD_OUT, never installed.
# scripts/held-out-suites.sh does the same for bash, make, git and perl. A test whose results differ is repeated, as some depend on time.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- target/release/spawnscope accel --
prefix=("$@")
[[ ${prefix[0]} != */* ]] || prefix[0]=$(realpath "${prefix[0]}")
place=$(mkdir -p "${HELD_OUT:-target/held-out}" && realpath "${HELD_OUT:-target/held-out}")
results=$(mktemp -d)
trap 'rm -rf --one-file-system "$results"' EXIT
export LC_ALL=C
failed=0

# once INTO FILTER COMMAND...: the lines of its output that are results, and its status.
once() {
    local into=$1 filter=$2 status=0
    shift 2
    timeout --kill-after=10 900 "$@" </dev/null >"$results/output" 2>&1 || status=$?
    { tr '\r' '\n' <"$results/output" | grep -aoE "$filter" | sort || true; echo "status $status"; } >"$into"
}

# compare NAME FILTER COMMAND...: in the present directory.
compare() {
    local name=$1 filter=$2 attempt lines
    shift 2
    for attempt in 1 2 3; do
        once "$results/plain" "$filter" "$@"
        once "$results/prefixed" "$filter" "${prefix[@]}" "$@"
        lines=$(($(wc -l <"$results/plain") - 1))
        [ "$lines" -gt 0 ] || break
        if cmp -s "$results/plain" "$results/prefixed"; then
            echo "same       $name: $lines results, $(tail -n 1 "$results/plain")"
            return
        fi
    done
    echo "DIFFERENT  $name: $lines results"
    diff "$results/plain" "$results/prefixed" | head -n 20 || true
    failed=1
}

python_suite() {
    local folder=$place/python module
    if [ ! -d "$folder/usr" ]; then
        mkdir -p "$folder"
        (cd "$folder" && apt-get -qq -o APT::Sandbox::User=root download libpython3.11-testsuite && dpkg-deb --extract ./*-testsuite_*.deb .)
    fi
    cat >"$folder/module.py" <<'PYTHON'
# Runs a test module of the package, as it is in CPython's source.
import glob, sys, unittest
import test
tests = glob.glob(f"{sys.path[0]}/usr/lib/python3.*/test")
test.__path__[:0] = tests
sys.path += tests  # where test.support finds the files of tests
unittest.main(module=f"test.{sys.argv.pop()}", verbosity=2)
PYTHON
    cd "$folder"
    for module in test_subprocess test_os test_popen test_posix; do
        compare "python $module" '^test[A-Za-z0-9_]* \(.*(ok|FAIL|ERROR|skipped).*|^(FAIL|ERROR): .*' /usr/bin/python3 module.py "$module"
    done
}

# source_of PACKAGE FOLDER: downloads the source of a package of Debian 12.
source_of() {
    local lists=$place/apt apt
    mkdir -p "$lists/lists/partial" "$lists/cache"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" >"$lists/sources.list"
    apt=(apt-get -qq -o "Dir::Etc::SourceList=$lists/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$lists/lists"
        -o "Dir::Cache=$lists/cache" -o APT::Sandbox::User=root -o Debug::NoLocking=true)
    [ -n "$(find "$lists/fetched" -mtime -1 2>/dev/null)" ] || { "${apt[@]}" update && touch "$lists/fetched"; }
    (cd "$2" && "${apt[@]}" --only-source --download-only source "$1")
}

php_suite() {
    local root=$place/php archive tests
    if [ ! -e "$root/php" ]; then
        scripts/suite-packages.sh bookworm "$root.packages" php-cli
        mkdir -p "$root"
        for archive in "$root.packages"/*.deb; do
            dpkg-deb --fsys-tarfile "$archive" | tar -x --keep-directory-symlink -C "$root"
        done
        source_of php8.2 "$root"
        mkdir "$root/source"
        tar -xf "$root"/php8.2_*.orig.tar.xz -C "$root/source" --strip-components=1
        printf '#!/bin/sh\nLD_LIBRARY_PATH=%s/usr/lib/x86_64-linux-gnu exec %s/usr/bin/php8.2 "$@"\n' "$root" "$root" >"$root/php"
        chmod +x "$root/php"
    fi
    cd "$root/source"
    mapfile -t tests < <(grep -rlE '(exec|popen|proc_open|system|passthru)\(' --include='*.phpt' ext/standard/tests Zend/tests sapi/cli/tests | sort)
    compare "php, ${#tests[@]} files" '(PASS|FAIL|SKIP|BORK|XFAIL|WARN).*phpt\]' env NO_INTERACTION=1 NO_COLOR=1 TEST_PHP_EXECUTABLE="$root/php" \
        "$root/php" run-tests.php -q "${tests[@]}"
}

(python_suite && exit "$failed") || failed=1
(php_suite && exit "$failed") || failed=1
exit "$failed"
