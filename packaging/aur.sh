#!/usr/bin/env bash
# Prints the PKGBUILD of spawnscope-bin for the Arch User Repository, from the checksums of a release. `make dist` writes it
# into target/dist, because a PKGBUILD in git would name a release that is not built yet. scripts/slow/aur.sh tests it.
# Usage: aur.sh VERSION SHA256SUMS
set -euo pipefail

version=$1 sums=$2
url=https://github.com/spawnscope/spawnscope
architectures=() sources=''
for arch in x86_64 aarch64; do
    archive=spawnscope-$version-$arch-linux.tar.gz
    sum=$(awk -v name="$archive" '$2 == name { print $1 }' "$sums")
    [ -n "$sum" ] || continue
    architectures+=("$arch")
    sources+="source_$arch=(\"\$url/releases/download/v\$pkgver/spawnscope-\$pkgver-$arch-linux.tar.gz\")"$'\n'
    sources+="sha256sums_$arch=($sum)"$'\n'
done
[ -n "$sources" ] || { echo "$sums names no archive of version $version" >&2; exit 1; }

cat <<END
# Maintainer: The Spawnscope contributors <spawnscope@users.noreply.github.com>
pkgname=spawnscope-bin
pkgver=$version
pkgrel=1
pkgdesc='Causal profiler for process launches, and the library vspawn'
arch=(${architectures[*]})
url=$url
license=(Apache-2.0 MIT)
depends=('glibc>=2.31')
provides=("spawnscope=\$pkgver" libvspawn.so=0-64)
conflicts=(spawnscope)
# The programs of a release are stripped. libvspawn.a is for programs that link it statically.
options=(!strip !debug staticlibs)
$sources
package() {
    mkdir -p "\$pkgdir/usr"
    cp -a "\$srcdir/spawnscope-\$pkgver-\$CARCH-linux/." "\$pkgdir/usr"
    install -D -m 644 -t "\$pkgdir/usr/share/licenses/\$pkgname" "\$pkgdir/usr/share/doc/spawnscope/LICENSE-MIT"
}
END
