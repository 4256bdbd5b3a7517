#!/usr/bin/env bash
# Makes target/roots with one folder for each suite of Debian's, in which its bash, dash, busybox and Python are unpacked with all that
# they need, never installed. Tests record scripts within them. Optional: whoever needs them says so through SPAWNSCOPE_TEST_REQUIRE.
set -euo pipefail
cd "$(dirname "$0")/.."

roots=target/roots
if [ -e "$roots/complete" ]; then
    exit 0
fi
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT

unpack() { # ROOT PACKAGE...: what lies in links to folders of the root's goes through them
    local root=$1
    shift
    for package in "$@"; do
        dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"
    done
}

for suite in bullseye bookworm trixie sid; do
    root=$roots/$suite folder=$packages/$suite
    rm -rf "$root"
    mkdir -p "$root"
    scripts/suite-packages.sh "$suite" "$folder" base-files bash bash-static busybox-static dash python3
    # The interpreter as a library has the version in its package's name.
    python=$(basename "$(ls "$folder"/python3.*-minimal_*.deb)")
    scripts/suite-packages.sh "$suite" "$folder" "lib${python%%-*}"
    unpack "$root" "$folder"/base-files_*.deb
    rm "$folder"/base-files_*.deb
    unpack "$root" "$folder"/*.deb
    rm -r "$folder"
    ln -s busybox "$root/bin/ash"
done
touch "$roots/complete"
