#!/usr/bin/env bash
# Creates target/dist: an archive, packages and a wheel for each architecture given as argument; one npm package for all of them; the sources;
# and checksums.
. "$(dirname "$0")/settings.sh"
[ $# -gt 0 ] || fail "usage: scripts/dist/dist.sh ARCHITECTURE..., such as x86_64 aarch64"

scripts/install-dependencies.sh dist
scripts/dist/tools.sh "$@"
rm -rf "$DIST"
mkdir -p "$DIST"
for arch in "$@"; do
    [ "$arch" = "$(uname -m)" ] || scripts/install-dependencies.sh "$arch"
    scripts/dist/build.sh "$arch"
    scripts/dist/package.sh "$arch"
    libraries+=("$arch=target/$arch-unknown-linux-gnu/release/libvspawn_node.so")
done
COPYRIGHT=target/$1-unknown-linux-gnu/release/dist/copyright scripts/node-package.sh "$DIST" "${libraries[@]}"

[ -z "$(git status --porcelain)" ] || echo "warning: the binaries contain uncommitted changes, the source archive does not" >&2
git archive --prefix="spawnscope-$VERSION/" HEAD | gzip --no-name --best >"$DIST/spawnscope-$VERSION-source.tar.gz"
cp install.sh "$DIST"
# libbpf-sys includes libelf, whose licence requires the source with the binaries.
libelf=$(cargo metadata --locked --format-version 1 | python3 -c '
import json, sys
print(next("{name}-{version}.crate".format(**package) for package in json.load(sys.stdin)["packages"] if package["name"] == "libbpf-sys"))')
find "${CARGO_HOME:-$HOME/.cargo}/registry/cache" -name "$libelf" -exec cp {} "$DIST/" \;
[ -e "$DIST/$libelf" ] || fail "$libelf is not in cargo's package cache; its source must be distributed with the binaries"

(cd "$DIST" && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
for file in aur:PKGBUILD homebrew:spawnscope.rb nix:spawnscope.nix aqua:aqua.yaml mise:mise.toml; do
    packaging/package.sh "${file%%:*}" "$VERSION" "$DIST/SHA256SUMS" >"$DIST/${file#*:}"
done
