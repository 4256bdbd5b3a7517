#!/usr/bin/env bash
# Runs in-root.sh on an emulated machine of another architecture, with Debian's kernel, as in kernel-matrix.sh: eBPF needs a kernel of that
# architecture. The guest boots from the suite's root directory, loaded into its memory, so each run has a fresh one.
#   guest.sh ARCHITECTURE SUITE KIND
. "$(dirname "$0")/settings.sh"
for_architecture "$1"
suite=$2 kind=$3
kernel=6.12
# The time limit of the guest, in seconds of host time. On a busy host, a guest took 2 to 4 minutes.
limit=1800
# shellcheck disable=SC2034
cache=$PWD/target/kernel-matrix

. scripts/kernel-matrix/architecture.sh
. scripts/kernel-matrix/packages.sh
choose_architecture "$ARCH"
fetch_kernel "$kernel"

archive() { (cd "$1" && find . -print0 | cpio --null --create --format=newc --owner=0:0 --quiet); }
base=$ROOTS/$suite.cpio
if ! [ "$base" -nt "$ROOTS/$suite.complete" ]; then
    archive "$ROOTS/$suite" >"$base.new"
    mv "$base.new" "$base"
fi

top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
added=$top/added
mkdir -p "$added/dist" "$added/tmp"
find "$DIST" -type f \( -name "*$ARCH*" -o -name "*_$DEBIAN.deb" -o -name "vspawn-$VERSION.tgz" \) -exec cp {} "$added/dist" \;
cp scripts/dist/in-root.sh "$added/tmp"
cat >"$added/init" <<INIT
#!/bin/bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
ldconfig
uname -a
bash /tmp/in-root.sh $kind $VERSION $ARCH $DEBIAN </dev/null
echo "@status \$?"
echo b >/proc/sysrq-trigger
INIT
chmod 755 "$added/init"
archive "$added" | cat "$base" - >"$top/image.cpio"

timeout "$limit" nice "${qemu[@]}" -accel tcg -smp 1 -m 2048 -nodefaults -no-user-config -display none -serial stdio -no-reboot \
    -kernel "$cache/kernels/$ARCH/$kernel/vmlinuz" -initrd "$top/image.cpio" \
    -append "console=$console quiet loglevel=3 panic=-1" </dev/null | tr -d '\r' >"$top/console" || true
sed '/^@status/,$d' "$top/console"
grep -q '^@status 0$' "$top/console"
