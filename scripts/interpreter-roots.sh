#!/usr/bin/env bash
# Creates target/roots with one directory for each Debian suite, and unpacks the suite's bash, dash, busybox, zsh, Python, Perl and make into it, with all
# dependencies; nothing is installed. Tests record scripts that run in these directories. They are optional, unless SPAWNSCOPE_TEST_REQUIRE
# contains `roots`.
set -euo pipefail
cd "$(dirname "$0")/.."

roots=target/roots
programs=(base-files bash bash-static busybox-static dash zsh python3 perl-base make)
if [ "$(cat "$roots/complete" 2>/dev/null)" = "${programs[*]}" ]; then
    exit 0
fi
rm -f "$roots/complete"
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT

unpack() { # ROOT PACKAGE...: follows symbolic links to directories in the root (/bin)
    local root=$1
    shift
    for package in "$@"; do
        dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"
    done
}

for suite in bullseye bookworm trixie sid; do
    root=$roots/$suite directory=$packages/$suite
    rm -rf "$root"
    mkdir -p "$root"
    scripts/suite-packages.sh "$suite" "$directory" "${programs[@]}"
    # The name of the package with the interpreter as a library contains the version.
    python=$(basename "$(ls "$directory"/python3.*-minimal_*.deb)")
    scripts/suite-packages.sh "$suite" "$directory" "lib${python%%-*}"
    unpack "$root" "$directory"/base-files_*.deb
    rm "$directory"/base-files_*.deb
    unpack "$root" "$directory"/*.deb
    rm -r "$directory"
    ln -s busybox "$root/bin/ash"
done
echo "${programs[*]}" >"$roots/complete"
