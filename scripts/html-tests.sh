#!/usr/bin/env bash
# Checks the page of `spawnscope html`: whether the checked-in bundle is what crates/spawnscope/html builds, its types, and whether it works in a
# real Chromium. Installs the npm packages of the lock file into crates/spawnscope/html/node_modules. SPAWNSCOPE is the program to
# test (default: target/debug/spawnscope, which is built), CHROMIUM the browser. GOLDEN=overwrite updates the reference screenshots.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-dependencies.sh browser
if [ -z "${SPAWNSCOPE:-}" ]; then
    scripts/test-binary.sh
    export SPAWNSCOPE=$PWD/target/debug/spawnscope
fi
cd crates/spawnscope/html
npm ci --no-audit --no-fund --ignore-scripts
npm run check
timeout 300 npm test
