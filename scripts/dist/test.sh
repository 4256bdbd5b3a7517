#!/usr/bin/env bash
# For the architectures given as arguments, installs everything in target/dist in fresh root directories of each suite, and uses it there, as
# described in scripts/dist/in-root.sh. Needs root. A fresh root directory is an overlay on one made by roots.sh, in its own mount
# namespace, and leaves nothing behind. For architectures other than this machine's, the tests run on an emulated machine (guest.sh).
. "$(dirname "$0")/settings.sh"
SUITES=(bullseye trixie)
KINDS=(archive deb rpm wheel npm)

[ "$(id -u)" -eq 0 ] || fail "chroot and eBPF need root: run this script with sudo"
[ -e "$DIST/SHA256SUMS" ] || fail "there is nothing in $DIST: run make dist first"
(cd "$DIST" && sha256sum --quiet --check SHA256SUMS)

# run_in_fresh_root SUITE KIND: runs in-root.sh as root in a fresh root directory of a suite, with target/dist at /dist.
run_in_fresh_root() {
    local suite=$1 kind=$2
    if [ "$ARCH" != "$(uname -m)" ]; then
        scripts/dist/guest.sh "$ARCH" "$suite" "$kind"
        return
    fi
    # shellcheck disable=SC2016
    unshare --mount --propagation private sh -euc '
        base=$1 dist=$2 script=$3
        shift 3
        mount -t tmpfs none /mnt
        mkdir /mnt/changes /mnt/work /mnt/root
        mount -t overlay overlay -o "lowerdir=$base,upperdir=/mnt/changes,workdir=/mnt/work" /mnt/root
        cd /mnt/root
        mkdir -p dist
        mount --bind "$dist" dist
        cp "$script" tmp/in-root.sh
        mount -t proc none proc
        mount --rbind /sys sys
        mount --rbind /dev dev
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb \
            chroot . bash /tmp/in-root.sh "$@"' sh "$PWD/$ROOTS/$suite" "$PWD/$DIST" "$PWD/scripts/dist/in-root.sh" \
        "$kind" "$VERSION" "$ARCH" "$DEBIAN"
}

# test_kind SUITE KIND: tests one kind of package in one suite, and prints the result.
test_kind() {
    local log=$ROOTS/$1-$2.log
    if run_in_fresh_root "$1" "$2" >"$log" 2>&1; then
        echo "$ARCH $1 $2: $(tail -1 "$log")"
    else
        tail -30 "$log" >&2
        echo "$ARCH $1 $2: FAILED; the complete output is in $log" >&2
        return 1
    fi
}

failed=0
for arch in "$@"; do
    for_architecture "$arch"
    [ "$ARCH" = "$(uname -m)" ] || scripts/install-dependencies.sh kernels "$ARCH"
    scripts/dist/roots.sh "$ARCH" "${SUITES[@]}"
    for suite in "${SUITES[@]}"; do
        for kind in "${KINDS[@]}"; do
            # Debian 11's Node is older than what the package supports.
            [ "$suite-$kind" != bullseye-npm ] || continue
            test_kind "$suite" "$kind" || failed=1
        done
    done
done
exit $failed
