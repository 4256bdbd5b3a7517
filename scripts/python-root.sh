#!/usr/bin/env bash
# Unpacks the Python of a Debian suite into a directory for chroot, with its tests (libpython3.N-testsuite) and all
# dependencies. Nothing is installed. bookworm has Python 3.11, trixie 3.13.
#   python-root.sh SUITE ROOT [PACKAGE...]        also unpacks these packages
set -euo pipefail

suite=$1 root=$(mkdir -p "$2" && realpath "$2")
shift 2
cd "$(dirname "$0")/.."
packages=$root.packages

# --keep-directory-symlink: files below a symlinked directory (/bin) are extracted through the link.
unpack() { # PACKAGE...
    for archive in "$@"; do
        dpkg-deb --fsys-tarfile "$archive" | tar -x --keep-directory-symlink -C "$root"
    done
}

scripts/suite-packages.sh "$suite" "$packages" base-files base-passwd coreutils dash procps python3 "$@"
python=$(basename "$(ls "$packages"/python3.*-minimal_*.deb)")
scripts/suite-packages.sh "$suite" "$packages" "lib${python%%-*}-testsuite"
unpack "$packages"/base-files_*.deb
rm "$packages"/base-files_*.deb
unpack "$packages"/*.deb
rm -r "$packages"
# Create what the packages' maintainer scripts would create.
cp "$root"/usr/share/base-passwd/passwd.master "$root/etc/passwd"
cp "$root"/usr/share/base-passwd/group.master "$root/etc/group"
[ -e "$root/bin/sh" ] || ln -s dash "$root/bin/sh"
mkdir -p "$root/proc" "$root/dev" "$root/tmp"
