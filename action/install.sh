#!/usr/bin/env bash
# First step of the action: installs a release of spawnscope for this machine, checked against the checksums of the release, and puts it
# into PATH for the next steps. With version `installed`, the spawnscope that is already in PATH is used.
set -euo pipefail

version=${INPUT_VERSION:?the version to install is not set}
releases=${SPAWNSCOPE_RELEASES:-https://github.com/spawnscope/spawnscope/releases/download}

fail() {
    echo "::error title=spawnscope::$*"
    exit 1
}

if [ "$version" = installed ]; then
    command -v spawnscope >/dev/null || fail "no spawnscope in PATH: install one before this action, or give a version"
    exit 0
fi
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "the version must look like 0.2.0"
[ "$(uname -s)" = Linux ] || fail "spawnscope records on Linux: use a runner such as ubuntu-latest"

archive=spawnscope-$version-$(uname -m)-linux.tar.gz
target=${RUNNER_TEMP:-/tmp}/spawnscope-$version
mkdir -p "$target"
for file in "$archive" SHA256SUMS; do
    curl --fail --silent --show-error --location --retry 3 --output "$target/$file" "$releases/v$version/$file" ||
        fail "failed to download $file of release v$version"
done
# Uses grep instead of --ignore-missing, which would accept an archive that is not listed.
(cd "$target" && grep -F "  $archive" SHA256SUMS | sha256sum --check --strict --quiet) ||
    fail "the checksum of $archive is wrong"
tar -xzf "$target/$archive" -C "$target" --strip-components 1
echo "$target/bin" >>"$GITHUB_PATH"
