#!/usr/bin/env bash
# Runs cpython-subprocess-tests.py with the Python of Debian suites: bookworm has 3.11, trixie 3.13. Each is unpacked with its tests and all
# dependencies into a temporary root, never installed, and gets the wheel of target/venv (scripts/python-wheel.sh). Needs root.
#   cpython-suites.sh [SUITE...]
set -euo pipefail
cd "$(dirname "$0")/.."

package=${VSPAWN_PACKAGE:-$(target/venv/bin/python -c 'import os, vspawn; print(os.path.dirname(vspawn.__file__))')}
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT

unpack() { # ROOT PACKAGE...: files below symbolic links to directories of the root go through them
    local root=$1
    shift
    for archive in "$@"; do
        dpkg-deb --fsys-tarfile "$archive" | tar -x --keep-directory-symlink -C "$root"
    done
}

prepare() { # SUITE ROOT
    local suite=$1 root=$2 packages=$2.packages python
    mkdir -p "$root"
    scripts/suite-packages.sh "$suite" "$packages" base-files base-passwd coreutils dash procps python3
    python=$(basename "$(ls "$packages"/python3.*-minimal_*.deb)")
    scripts/suite-packages.sh "$suite" "$packages" "lib${python%%-*}-testsuite"
    unpack "$root" "$packages"/base-files_*.deb
    rm "$packages"/base-files_*.deb
    unpack "$root" "$packages"/*.deb
    rm -r "$packages"
    # What the packages' scripts would create.
    cp "$root"/usr/share/base-passwd/passwd.master "$root/etc/passwd"
    cp "$root"/usr/share/base-passwd/group.master "$root/etc/group"
    [ -e "$root/bin/sh" ] || ln -s dash "$root/bin/sh"
    mkdir -p "$root/proc" "$root/dev" "$root/tmp"
    cp -r "$package" "$root/usr/lib/python3/dist-packages/vspawn"
    cp scripts/cpython-subprocess-tests.py "$root/tmp/"
}

failed=0
[ $# -gt 0 ] || set -- bookworm trixie
for suite in "$@"; do
    root=$folder/$suite
    prepare "$suite" "$root"
    # Its own /proc and process ids: a test that leaves a process leaves none here. The mounts end with the namespace.
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --propagation private -- sh -c '
        mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" &&
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp timeout 1800 \
            chroot "$1" /usr/bin/python3 /tmp/cpython-subprocess-tests.py' sh "$root" || failed=1
    rm -rf --one-file-system "$root"
done
exit "$failed"
