#!/usr/bin/env bash
# Runs cpython-subprocess-tests.py with the Python of Debian suites, each in a temporary chroot (python-root.sh) into which the wheel of target/venv
# (scripts/python-wheel.sh) is copied. Needs root.
#   cpython-suites.sh [SUITE...]
set -euo pipefail
cd "$(dirname "$0")/.."

package=${VSPAWN_PACKAGE:-$(target/venv/bin/python -c 'import os, vspawn; print(os.path.dirname(vspawn.__file__))')}
directory=$(mktemp -d)
trap 'rm -rf --one-file-system "$directory"' EXIT

failed=0
[ $# -gt 0 ] || set -- bookworm trixie
for suite in "$@"; do
    root=$directory/$suite
    scripts/python-root.sh "$suite" "$root"
    cp -r "$package" "$root/usr/lib/python3/dist-packages/vspawn"
    cp scripts/cpython-subprocess-tests.py "$root/tmp/"
    # With its own /proc and process ids, so that processes that a test leaves behind end with the namespace, and so do the mounts.
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --propagation private -- sh -c '
        mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" &&
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp timeout 1800 \
            chroot "$1" /usr/bin/python3 /tmp/cpython-subprocess-tests.py' sh "$root" || failed=1
    rm -rf --one-file-system "$root"
done
exit "$failed"
