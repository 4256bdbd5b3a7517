#!/usr/bin/env bash
# Builds the package of packaging/aur.sh with makepkg, from an archive with the layout of a release and a script in place of
# the program, and compares the files in the package with those in the archive. makepkg compresses manual pages.
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/install-dependencies.sh aur

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
tree=spawnscope-$version-$(uname -m)-linux
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/built" "$work/$tree/share/doc/spawnscope"
printf '#!/bin/sh\necho "$@"\n' >"$work/built/spawnscope"
chmod 755 "$work/built/spawnscope"
touch "$work"/built/libvspawn{.so,.a,_preload.so}
make --silent install PREFIX= DESTDIR="$work/$tree" BINARY="$work/built/spawnscope" LIBRARY_FROM="$work/built" PRELOAD_FROM="$work/built"
cp LICENSE-* "$work/$tree/share/doc/spawnscope"
tar -C "$work" -czf "$work/$tree.tar.gz" "$tree"
(cd "$work" && sha256sum "$tree.tar.gz" >SHA256SUMS)
packaging/aur.sh "$version" "$work/SHA256SUMS" >"$work/PKGBUILD"

# makepkg refuses to run as root. It uses the archive beside the PKGBUILD, and checks its sum.
# Debian has makepkg without pacman, which would only install dependencies.
as_user=()
if [ "$(id -u)" -eq 0 ]; then
    as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    chown -R 65534:65534 "$work"
fi
(cd "$work" && "${as_user[@]}" env HOME="$work" PKGEXT=.pkg.tar PACMAN=true makepkg --nodeps --noconfirm)
(cd "$work" && "${as_user[@]}" env HOME="$work" PACMAN=true makepkg --printsrcinfo | grep "pkgver = $version" >/dev/null)
files() { tar -tf "$1" | grep -v '/$' | sed "s|^$2/||" | sort; }
diff <(files "$work/$tree.tar.gz" "$tree") <(files "$work"/spawnscope-bin-*.pkg.tar usr | sed '/^\.\|^share\/licenses/d; s|^\(share/man/.*\)\.gz$|\1|')
echo "the package has the files of the archive"
