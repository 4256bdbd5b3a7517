#!/usr/bin/env bash
# Runs the short battery on the given kernels under emulation. The binary is optimized less than a release, whose build takes longer than the
# tests.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/install-dependencies.sh kernels
CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 scripts/kernel-matrix.sh --short "$@"
