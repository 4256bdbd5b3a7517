#!/usr/bin/env bash
# Builds what would be published, outside of the workspace and from the packaged files only, to check that the packages are complete.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Cargo keeps unpacked packages, and would reuse an outdated one of the same version.
rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/{spawnscope,vspawn}* target/package
# In the target directory of the tests, which need the same dependencies.
CARGO_TARGET_DIR=$PWD/target cargo package --locked --workspace --exclude vspawn-capi --exclude vspawn-preload --exclude vspawn-python
rm -rf target/package
