#!/usr/bin/env bash
# Prints the file that a package manager needs to install a release, made from the release's checksums. `make dist` writes all of them into
# target/dist, because a file in git would name a release that is not built yet. scripts/slow/packaging.sh tests them.
# Usage: package.sh aur|homebrew|nix|aqua|mise VERSION SHA256SUMS
# SPAWNSCOPE_RELEASES names another server with the same files, as for install.sh.
set -euo pipefail

format=$1 version=$2 sums=$3
url=https://github.com/spawnscope/spawnscope
releases=${SPAWNSCOPE_RELEASES:-$url/releases}
description='Causal profiler for process launches, and the library vspawn'

archive() { echo "spawnscope-$version-$1-linux.tar.gz"; }
address() { echo "$releases/download/v$version/$(archive "$1")"; }
sum() { awk -v name="$(archive "$1")" '$2 == name { print $1 }' "$sums"; }

architectures=()
for arch in x86_64 aarch64; do
    [ -z "$(sum "$arch")" ] || architectures+=("$arch")
done
[ ${#architectures[@]} -gt 0 ] || { echo "$sums names no archive of version $version" >&2; exit 1; }

# Prints a text for each architecture, with the name that it has in the format, and the address and the sum of its archive.
each() {
    # shellcheck disable=SC2034  # read as ${!arch}
    local x86_64=$1 aarch64=$2 arch text
    for arch in "${architectures[@]}"; do
        text=${3//NAME/"${!arch}"}
        text=${text//ADDRESS/"$(address "$arch")"}
        printf '%s\n' "${text//SUM/"$(sum "$arch")"}"
    done
}

case $format in
aur)
    cat <<END
# Maintainer: The Spawnscope contributors <spawnscope@users.noreply.github.com>
pkgname=spawnscope-bin
pkgver=$version
pkgrel=1
pkgdesc='$description'
arch=(${architectures[*]})
url=$url
license=(Apache-2.0 MIT)
depends=('glibc>=2.31')
provides=("spawnscope=\$pkgver" libvspawn.so=0-64)
conflicts=(spawnscope)
# The programs of a release are stripped. libvspawn.a is for programs that link it statically.
options=(!strip !debug staticlibs)
$(each x86_64 aarch64 'source_NAME=("ADDRESS")')
$(each x86_64 aarch64 'sha256sums_NAME=(SUM)')

package() {
    mkdir -p "\$pkgdir/usr"
    cp -a "\$srcdir/spawnscope-\$pkgver-\$CARCH-linux/." "\$pkgdir/usr"
    install -D -m 644 -t "\$pkgdir/usr/share/licenses/\$pkgname" "\$pkgdir/usr/share/doc/spawnscope/LICENSE-MIT"
}
END
    ;;
homebrew)
    cat <<END
class Spawnscope < Formula
  desc "$description"
  homepage "$url"
  version "$version"
  license any_of: ["Apache-2.0", "MIT"]
  depends_on :linux

$(each intel arm '  on_NAME do
    url "ADDRESS"
    sha256 "SUM"
  end')

  def install
    prefix.install Dir["*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/spawnscope --version")
  end
end
END
    ;;
nix)
    cat <<END
# pkgs.callPackage ./spawnscope.nix { }
{ lib, stdenv, fetchurl, autoPatchelfHook }:

stdenv.mkDerivation {
  pname = "spawnscope";
  version = "$version";
  src = fetchurl ({
$(each x86_64 aarch64 '    "NAME-linux" = { url = "ADDRESS"; sha256 = "SUM"; };')
  }.\${stdenv.hostPlatform.system} or (throw "no release of spawnscope for \${stdenv.hostPlatform.system}"));
  nativeBuildInputs = [ autoPatchelfHook ];
  buildInputs = [ stdenv.cc.cc.lib ];
  dontConfigure = true;
  dontBuild = true;
  dontStrip = true;
  installPhase = ''
    runHook preInstall
    mkdir -p \$out
    cp -a . \$out
    runHook postInstall
  '';
  meta = {
    description = "$description";
    homepage = "$url";
    license = with lib.licenses; [ asl20 mit ];
    platforms = [ $(printf '"%s-linux" ' "${architectures[@]}")];
    mainProgram = "spawnscope";
    sourceProvenance = [ lib.sourceTypes.binaryNativeCode ];
  };
}
END
    ;;
aqua)
    cat <<END
packages:
  - type: http
    repo_owner: spawnscope
    repo_name: spawnscope
    description: $description
    url: $releases/download/{{.Version}}/spawnscope-{{trimV .Version}}-{{.Arch}}-linux.tar.gz
    format: tar.gz
    replacements:
      amd64: x86_64
      arm64: aarch64
    supported_envs: [$(each linux/amd64 linux/arm64 NAME | paste -sd, | sed 's/,/, /')]
    files:
      - name: spawnscope
        src: spawnscope-{{trimV .Version}}-{{.Arch}}-linux/bin/spawnscope
    checksum:
      type: http
      url: $releases/download/{{.Version}}/SHA256SUMS
      algorithm: sha256
END
    ;;
mise)
    cat <<END
# In mise.toml:
[tools."http:spawnscope"]
version = "$version"
strip_components = 1
bin_path = "bin"

[tools."http:spawnscope".platforms]
$(each linux-x64 linux-arm64 'NAME = { url = "ADDRESS", checksum = "sha256:SUM" }')
END
    ;;
*) echo "package.sh: unknown format $format" >&2 && exit 1 ;;
esac
