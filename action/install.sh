#!/usr/bin/env bash
# First step of the action: installs a release of spawnscope with the repository's install.sh, and puts it into PATH for
# the next steps. With version `installed`, the spawnscope that is already in PATH is used.
set -euo pipefail

version=${INPUT_VERSION:?the version to install is not set}

fail() {
    echo "::error title=spawnscope::$*"
    exit 1
}

if [ "$version" = installed ]; then
    command -v spawnscope >/dev/null || fail "no spawnscope in PATH: install one before this action, or give a version"
    exit 0
fi
target=${RUNNER_TEMP:-/tmp}/spawnscope-$version
printed=$("$(dirname "$0")/../install.sh" --version "$version" --prefix "$target" 2>&1) || fail "${printed//$'\n'/ }"
echo "$target/bin" >>"$GITHUB_PATH"
