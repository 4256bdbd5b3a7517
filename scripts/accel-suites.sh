#!/usr/bin/env bash
# Runs those tests of CPython and PHP that launch many processes, with and without `spawnscope accel`, and compares the result of each test:
#   accel-suites.sh [PREFIX...]        PREFIX is put before each command (default: target/release/spawnscope accel --)
# CPython's tests are test_subprocess, test_os, test_popen and test_posix of 3.11 and 3.13, from Debian 12 and 13; PHP's are the tests in its source
# that call exec, system, passthru, popen or proc_open. For nrpe, the answers of a server with the standard plugins are compared.
# Packages and sources are unpacked into target/held-out or $HELD_OUT, never installed. scripts/held-out-suites.sh does the same for bash,
# make, git and perl.
# A test whose results differ is repeated, since some depend on time. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- target/release/spawnscope accel --
prefix=("$@")
[[ ${prefix[0]} != */* ]] || prefix[0]=$(realpath "${prefix[0]}")
sources=$(mkdir -p "${HELD_OUT:-target/held-out}" && realpath "${HELD_OUT:-target/held-out}")
results=$(mktemp -d)
trap 'rm -rf --one-file-system "$results"' EXIT
export LC_ALL=C
failed=0

# once INTO FILTER COMMAND...: runs a command, and writes the lines of its output that match FILTER, and its status, to INTO.
once() {
    local into=$1 filter=$2 status=0
    shift 2
    timeout --kill-after=10 900 "$@" </dev/null >"$results/output" 2>&1 || status=$?
    { tr '\r' '\n' <"$results/output" | grep -aoE "$filter" | sort || true; echo "status $status"; } >"$into"
}

# compare NAME FILTER COMMAND...: compares the results of a command without and with the prefix, in the current directory. Both are started
# through the command line in `within`.
within=()
compare() {
    local name=$1 filter=$2 attempt lines
    shift 2
    for attempt in 1 2 3; do
        once "$results/plain" "$filter" "${within[@]}" "$@"
        once "$results/prefixed" "$filter" "${within[@]}" "${prefix[@]}" "$@"
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

# Runs a command in the root directory given as first argument, with process ids of its own; the mounts end with these processes. This
# directory, which contains the prefix's program, is mounted there too.
# shellcheck disable=SC2016
in_root=(unshare --mount --pid --fork --propagation private -- sh -c '
    root=$1 here=$PWD; shift
    mkdir -p "$root/$here" && mount --bind "$here" "$root/$here" && mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev" &&
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C chroot "$root" "$@"' sh)

python_suite() { # SUITE
    local directory=$sources/python-$1 module
    if [ ! -e "$directory/module.py" ]; then
        scripts/python-root.sh "$1" "$directory" libelf1
        cat >"$directory/module.py" <<'PYTHON'
# Runs a test module of the Debian package, which has it as it is in CPython's source.
import sys, test, unittest
sys.path.append(test.__path__[0])  # where test.support finds the files of tests
unittest.main(module=f"test.{sys.argv.pop()}", verbosity=2)
PYTHON
    fi
    within=("${in_root[@]}" "$directory")
    for module in test_subprocess test_os test_popen test_posix; do
        compare "python of $1, $module" '^test[A-Za-z0-9_]* \(.*(ok|FAIL|ERROR|skipped).*|^(FAIL|ERROR): .*' python3 /module.py "$module"
    done
}

php_suite() {
    local root=$sources/php archive tests
    if [ ! -e "$root/php" ]; then
        scripts/suite-packages.sh bookworm "$root.packages" php-cli
        mkdir -p "$root"
        for archive in "$root.packages"/*.deb; do
            dpkg-deb --fsys-tarfile "$archive" | tar -x --keep-directory-symlink -C "$root"
        done
        scripts/suite-source.sh bookworm "$root" php8.2
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

nrpe_suite() {
    local root=$sources/nrpe archive
    if [ ! -e "$root/checks.sh" ]; then
        mkdir -p "$root"
        scripts/suite-packages.sh bookworm "$root.packages" base-files coreutils dash procps sed libelf1 nagios-nrpe-server nagios-nrpe-plugin \
            monitoring-plugins-basic
        for archive in "$root.packages"/base-files_*.deb "$root.packages"/*.deb; do
            dpkg-deb --fsys-tarfile "$archive" | tar -x --keep-directory-symlink -C "$root"
        done
        mkdir -p "$root/proc" "$root/dev" "$root/tmp"
        printf 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$root/etc/passwd"
        printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
        cp scripts/accel-nrpe.cfg "$root/nrpe.cfg"
        cp scripts/accel-nrpe.sh "$root/checks.sh"
    fi
    # With a network namespace of their own, only the server and its client use this loopback device.
    within=(unshare --net -- sh -c 'ip link set lo up && exec "$@"' sh "${in_root[@]}" "$root")
    compare "nrpe" '^check .*' sh /checks.sh
}

for suite in bookworm trixie; do
    (python_suite "$suite" && exit "$failed") || failed=1
done
(php_suite && exit "$failed") || failed=1
(nrpe_suite && exit "$failed") || failed=1
exit "$failed"
