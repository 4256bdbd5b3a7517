#!/usr/bin/env bash
# Builds target/debug/spawnscope with the flags of scripts/test.sh. `cargo build -p spawnscope` chooses other features of dependencies, so that
# half of them would be compiled again.
set -euo pipefail
cd "$(dirname "$0")/.."
exec cargo test --quiet --locked --workspace --features vspawn/tokio --no-run --test offline
