#!/usr/bin/env bash
# Builds everything for aarch64, and tests the code that depends on the processor under qemu-user. SPAWNSCOPE_TEST_REQUIRE
# is not set, because qemu-user cannot run tests whose children share memory; they are ignored. It cannot start programs,
# either, so the recorder's other unit tests are left out. The skipped test needs its own executable, which is qemu's here.
set -euo pipefail
cd "$(dirname "$0")/../.."
unset SPAWNSCOPE_TEST_REQUIRE

target=(--target aarch64-unknown-linux-gnu)
scripts/install-dependencies.sh aarch64
scripts/aarch64.sh cargo check --locked --workspace "${target[@]}"
scripts/aarch64.sh cargo test --locked -p spawnscope-collect -p spawnscope-data --lib "${target[@]}" -- \
    stacks:: callers:: syscalls decode per_cpu --skip mappings_are_not_read_once_another_program_runs_in_the_process
scripts/aarch64.sh cargo test --locked -p vspawn --features tokio "${target[@]}" --lib --test behaviour --test faults
