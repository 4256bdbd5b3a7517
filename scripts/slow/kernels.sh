#!/usr/bin/env bash
# Runs the short battery on the given kernels under emulation, with the binary of the tests: a guest
# takes 50 s more of CPU time than with an optimized one, whose build takes 400. It may be too slow to
# read the mappings of a parent that ends at once; the table says "no" then, as spawnscope does.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/install-dependencies.sh kernels
scripts/test-binary.sh
scripts/kernel-matrix.sh --short --binary target/debug/spawnscope "$@"
