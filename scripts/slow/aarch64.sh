#!/usr/bin/env bash
# Builds everything for aarch64, and runs under qemu-user the tests of code that depends on the processor. Tests whose children share memory are
# ignored there, so SPAWNSCOPE_TEST_REQUIRE is not set. Other unit tests of the recorder start programs, which qemu-user cannot. The skipped
# test needs the file of its own process.
set -euo pipefail
cd "$(dirname "$0")/../.."
unset SPAWNSCOPE_TEST_REQUIRE

target=(--target aarch64-unknown-linux-gnu)
scripts/install-dependencies.sh aarch64
scripts/aarch64.sh cargo check --locked --workspace "${target[@]}"
scripts/aarch64.sh cargo test --locked -p spawnscope-collect -p spawnscope-data --lib "${target[@]}" -- \
    stacks:: callers:: syscalls decode per_cpu --skip mappings_are_not_read_once_another_program_runs_in_the_process
scripts/aarch64.sh cargo test --locked -p vspawn --features tokio "${target[@]}" --lib --test behaviour --test faults
