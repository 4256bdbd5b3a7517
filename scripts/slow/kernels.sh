#!/usr/bin/env bash
# Runs the short battery on the given kernels under emulation. The binary is optimized less than a
# release, and has only the collector: a whole release takes longer to build than the tests to run.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/install-dependencies.sh kernels
cargo build --release --locked -p spawnscope --no-default-features --features ebpf \
    --config profile.release.opt-level=1 --config profile.release.codegen-units=16 --target-dir target/kernels
scripts/kernel-matrix.sh --short --binary target/kernels/release/spawnscope "$@"
