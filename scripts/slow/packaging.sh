#!/usr/bin/env bash
# Tests the files of packaging/package.sh with the tools that read them, on an archive with the layout of a release and a script in place of the
# program. makepkg builds the package for Arch Linux, and its files are compared with those of the archive; mise installs from a server on the
# loopback device, with its own backend and from aqua's file. Homebrew and Nixpkgs are not in packages: Ruby runs the formula with a stand-in
# for Homebrew's class, and Nix evaluates the derivation with stand-ins for what Nixpkgs passes to it.
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/install-dependencies.sh packaging

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
tree=spawnscope-$version-$(uname -m)-linux
work=$(mktemp -d)
server=''
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT
mkdir -p "$work/built" "$work/$tree/share/doc/spawnscope"
printf '#!/bin/sh\necho "$@"\n' >"$work/built/spawnscope"
chmod 755 "$work/built/spawnscope"
touch "$work"/built/libvspawn{.so,.a,_preload.so}
make --silent install PREFIX= DESTDIR="$work/$tree" BINARY="$work/built/spawnscope" LIBRARY_FROM="$work/built" PRELOAD_FROM="$work/built"
cp LICENSE-* "$work/$tree/share/doc/spawnscope"
tar -C "$work" -czf "$work/$tree.tar.gz" "$tree"
(cd "$work" && sha256sum "$tree.tar.gz" >SHA256SUMS)
packaging/package.sh aur "$version" "$work/SHA256SUMS" >"$work/PKGBUILD"

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

# The server has the addresses of a release.
released=$work/releases/download/v$version
mkdir -p "$released"
cp "$work/$tree.tar.gz" "$work/SHA256SUMS" "$released"
python3 -u -m http.server --bind 127.0.0.1 --directory "$work/releases" 0 >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 100); do
    port=$(sed -n 's/^Serving HTTP on .* port \([0-9]*\) .*/\1/p' "$work/server.log")
    [ -z "$port" ] || break
    sleep 0.1
done
package() { SPAWNSCOPE_RELEASES=http://127.0.0.1:$port packaging/package.sh "$1" "$version" "$2"; }

ruby scripts/slow/homebrew.rb <(package homebrew "$work/SHA256SUMS") "$work/$tree" "$work/keg"
diff -r "$work/$tree" "$work/keg"
echo "the formula installs the files of the archive"

package nix "$work/SHA256SUMS" >"$work/spawnscope.nix"
stand_ins='stdenv = { mkDerivation = x: x; hostPlatform.system = "x86_64-linux"; cc.cc.lib = 1; }; fetchurl = x: x; autoPatchelfHook = 2;
    lib = { licenses = { asl20 = 3; mit = 4; }; sourceTypes.binaryNativeCode = 5; };'
evaluated=$(nix-instantiate --eval --strict --json --expr "import $work/spawnscope.nix { $stand_ins }" 2>"$work/nix.log") || { cat "$work/nix.log" >&2; exit 1; }
SUM=$(sha256sum <"$work/$tree.tar.gz") python3 - "$evaluated" <<'END'
import json, os, sys, urllib.request
package = json.loads(sys.argv[1])
assert package["src"]["sha256"] == os.environ["SUM"].split()[0]
assert urllib.request.urlopen(package["src"]["url"]).status == 200
END
echo "the derivation names the archive and its sum"

[ -e target/mise/node_modules ] || npm install --silent --no-fund --no-audit --prefix target/mise @jdxcode/mise-linux-x64
mise=$PWD/target/mise/node_modules/@jdxcode/mise-linux-x64/bin/mise
install_with_mise() {
    mkdir "$work/$1"
    cat >"$work/$1/mise.toml"
    (cd "$work/$1" && env -i HOME="$work/$1" PATH="$PATH" MISE_YES=1 MISE_TRUSTED_CONFIG_PATHS="$work" "${@:2}" "$mise" exec -- spawnscope installed)
}
[ "$(package mise "$work/SHA256SUMS" | install_with_mise http)" = installed ]
echo "mise installs the archive"
sed 's/^[0-9a-f]/g/' "$work/SHA256SUMS" >"$work/wrong"
if package mise "$work/wrong" | install_with_mise refused 2>"$work/mise.log" || ! grep -qi checksum "$work/mise.log"; then
    cat "$work/mise.log" >&2
    exit 1
fi
echo "mise refuses an archive with another sum"

# A registry of aqua's is a Git repository.
mkdir "$work/registry"
package aqua "$work/SHA256SUMS" >"$work/registry/registry.yaml"
git -C "$work/registry" init --quiet
git -C "$work/registry" add registry.yaml
git -C "$work/registry" -c user.name=test -c user.email=test@example.com -c commit.gpgsign=false commit --quiet --message registry
registry=(MISE_AQUA_REGISTRY_URL="file://$work/registry" MISE_AQUA_BAKED_REGISTRY=false)
[ "$(printf '[tools]\n"aqua:spawnscope/spawnscope" = "v%s"\n' "$version" | install_with_mise aqua "${registry[@]}")" = installed ]
grep -q 'GET .*/SHA256SUMS' "$work/server.log"
echo "the archive is installed from aqua's file, after a look at its sum"
