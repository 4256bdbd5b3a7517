#!/usr/bin/env bash
# Fuzzes the parsers of untrusted input: scripts/fuzz.sh [SECONDS [TARGET...]] builds the targets of crates/spawnscope/fuzz with
# libFuzzer and runs each for this time (default: 10 seconds, all targets) on its corpus. If a target finds something, it prints the
# path of the input, and the exit status is 1. New inputs go to target/fuzz/corpus, not into the source tree. Needs a C++ compiler, but
# neither nightly Rust nor cargo-fuzz: the coverage for libFuzzer comes from LLVM, whose passes stable Rust can enable. `cargo fuzz run
# TARGET` works as well, and adds the address sanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
shift $(($# > 0 ? 1 : 0))

scripts/install-dependencies.sh fuzz
export CARGO_TARGET_DIR=${FUZZ_TARGET_DIR:-target/fuzz}
triple=$(rustc -vV | sed -n 's/^host: //p')
coverage=(level=4 inline-8bit-counters pc-table trace-compares)
flags="--cfg fuzzing -C passes=sancov-module"
for each in "${coverage[@]}"; do
    flags+=" -C llvm-args=-sanitizer-coverage-$each"
done
# With --target, build scripts and macros are built without these flags.
RUSTFLAGS=$flags cargo build --locked --release --manifest-path crates/spawnscope/fuzz/Cargo.toml --target "$triple"

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(cd crates/spawnscope/fuzz/fuzz_targets && ls -- *.rs | sed 's/\.rs$//')
fi
# fuzz TARGET: runs one target, and prints what it found.
fuzz() {
    local target=$1 found=$CARGO_TARGET_DIR/corpus/$1 log=$CARGO_TARGET_DIR/$1.log covered executed
    mkdir -p "$found" "$CARGO_TARGET_DIR/artifacts"
    # An input that takes 10 seconds or 1 GB is a finding too. The limit of the resident memory is higher, because the corpus is in memory.
    if ! "$CARGO_TARGET_DIR/$triple/release/$target" "$found" "crates/spawnscope/fuzz/corpus/$target" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="$CARGO_TARGET_DIR/artifacts/$target-" >"$log" 2>&1; then
        # Print the message first, because it is followed by a long backtrace.
        grep --max-count=5 --after-context=3 -E "panicked at|ERROR: libFuzzer" "$log" >&2 || true
        tail -n 40 "$log" >&2
        return 1
    fi
    covered=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1)
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "$target: $executed executions, ${covered/cov: /} edges covered, no findings"
}

# One target for each CPU at a time.
running=0 failed=0
for target in "${targets[@]}"; do
    if [ "$running" -ge "$(nproc)" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    fuzz "$target" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit "$failed"
