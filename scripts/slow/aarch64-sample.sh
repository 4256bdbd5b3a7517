#!/usr/bin/env bash
# Type-checks for aarch64 the crates that depend on the processor and need no C library of that architecture.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=aarch64-unknown-linux-gnu
[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || rustup target add "$target"
cargo check --quiet --locked -p vspawn -p spawnscope-data -p spawnscope-system --target "$target"
