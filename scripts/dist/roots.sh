#!/usr/bin/env bash
# Creates target/dist-roots/ARCH/SUITE, root directories in which test.sh installs the built packages: a minimal Debian, with the tools for RPMs,
# wheels, npm packages and C programs. Arguments: the architecture, then suites. Keeps existing directories with these packages. debootstrap runs programs of
# the new system; if this machine cannot run them, unpacked-root.sh creates the directory.
. "$(dirname "$0")/settings.sh"
for_architecture "$1"
shift

# Prints the address of the Debian mirror in this machine's own package sources.
mirror() {
    if [ -n "${SPAWNSCOPE_DEBIAN_MIRROR:-}" ]; then
        echo "$SPAWNSCOPE_DEBIAN_MIRROR"
    else
        # shellcheck disable=SC2016
        apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sort -u | head -1
    fi
}

packages=(gcc libc6-dev nodejs pkg-config python3 python3-pip rpm)
make_root() { # SUITE DIRECTORY
    if [ "$ARCH" != "$(uname -m)" ]; then
        scripts/dist/unpacked-root.sh "$ARCH" "$1" "$2" apt mount "${packages[@]}"
        return
    fi
    local from
    from=$(mirror)
    [ -n "$from" ] || fail "apt's package sources contain no Debian mirror: set SPAWNSCOPE_DEBIAN_MIRROR to the address of one"
    # debootstrap's mounts, if any, are in this namespace and end with it.
    unshare --mount debootstrap --arch "$DEBIAN" --variant minbase --include "$(IFS=, && echo "${packages[*]}")" "$1" "$2" "$from"
}

[ "$(id -u)" -eq 0 ] || fail "debootstrap needs root: run this script with sudo"
for suite in "$@"; do
    root=$ROOTS/$suite
    if [ "$(cat "$root.complete" 2>/dev/null)" = "${packages[*]}" ]; then continue; fi
    rm -rf "$root"
    mkdir -p "$root"
    make_root "$suite" "$root" >"$root.log" 2>&1 || {
        tail -20 "$root.log" >&2
        fail "failed to make a root directory of $suite: $root.log has the complete output"
    }
    rm -rf "$root"/var/cache/apt/archives/*.deb
    echo "${packages[*]}" >"$root.complete"
done
