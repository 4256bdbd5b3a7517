#!/usr/bin/env bash
# Checks the page of `spawnscope html`: the checked-in bundle is what crates/spawnscope/html builds, its types are right, and it works in a
# real Chromium. Installs the npm packages that the lock file names into crates/spawnscope/html/node_modules. SPAWNSCOPE names the program to
# test (default: target/debug/spawnscope, which is built), CHROMIUM the browser, and GOLDEN=overwrite renews the pictures.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-dependencies.sh browser
if [ -z "${SPAWNSCOPE:-}" ]; then
    cargo build --locked -p spawnscope
    export SPAWNSCOPE=$PWD/target/debug/spawnscope
fi
cd crates/spawnscope/html
npm ci --no-audit --no-fund --ignore-scripts
npm run check
timeout 300 npm test
