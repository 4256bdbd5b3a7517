#!/usr/bin/env bash
# Runs a command, such as `cargo test -p vspawn --lib --target aarch64-unknown-linux-gnu`, with what cargo needs to build for aarch64 on
# another machine and to run the result under qemu-user. `scripts/install-dependencies.sh aarch64` installs the tools.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
exec "$@"
