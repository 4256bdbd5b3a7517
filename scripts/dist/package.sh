#!/usr/bin/env bash
# Creates the archive and the packages from what build.sh has built for the architecture given as argument.
. "$(dirname "$0")/settings.sh"
for_architecture "$1"

# The binary that prints the completions, under qemu-user if it is for another architecture.
runnable=$BUILT/spawnscope
[ "$ARCH" = "$(uname -m)" ] || runnable="scripts/$ARCH.sh --program $runnable"
rm -rf "$PARTS"
mkdir -p "$TREE" "$PARTS/deb" "$PARTS/rpm"
ln -s "$(basename "$TREE")" "$PARTS/tree"

# The archive is relocatable, so vspawn.pc uses a prefix relative to itself.
make --silent install PREFIX= DESTDIR="$TREE" BINARY="$BUILT/spawnscope" RUNNABLE="$runnable" LIBRARY_FROM="$BUILT" PRELOAD_FROM="$BUILT/../preload" \
    PC_PREFIX='$${pcfiledir}/../..'
scripts/dist/licences.py "$TARGET" --features spawnscope/vendored >"$PARTS/copyright"
install -D -m 644 -t "$TREE/share/doc/spawnscope" README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$PARTS/copyright"
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --directory "$PARTS" \
    "$(basename "$TREE")" | gzip --no-name --best >"$DIST/$(basename "$TREE").tar.gz"

pkg_config() { # LIB_DIR
    sed -e 's|@PREFIX@|/usr|' -e "s|@LIB_DIR@|$1|" -e "s|@VERSION@|$VERSION|" crates/vspawn-capi/vspawn.pc.in
}
gzip --no-name --best >"$PARTS/deb/changelog.Debian.gz" <<END
spawnscope ($VERSION-1) unstable; urgency=medium

  * A release of the project. CHANGELOG.md lists the changes.

 -- The Spawnscope contributors <spawnscope@users.noreply.github.com>  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
END
pkg_config "lib/$ARCH-linux-gnu" >"$PARTS/deb/vspawn.pc"
deb() { cargo deb --quiet --no-build --no-strip --target "$TARGET" --output "$DIST/" "$@"; }
deb --package spawnscope
deb --package vspawn-capi --multiarch=same
deb --package vspawn-capi --multiarch=same --variant dev

pkg_config lib64 >"$PARTS/rpm/vspawn.pc"
# cargo-generate-rpm follows symbolic links, so the file that ld looks for is a script, like
# glibc's own libc.so.
echo '/* A script of ld. */ INPUT(libvspawn.so.0)' >"$PARTS/rpm/libvspawn.so"
# Compressed with gzip, which every version of rpm can read.
rpm() { cargo generate-rpm --target "$TARGET" --auto-req "$PWD/scripts/dist/needs.sh" --payload-compress gzip --output "$DIST/" "$@"; }
rpm --package crates/spawnscope
rpm --package crates/vspawn-capi
rpm --package crates/vspawn-capi --variant devel
