#!/usr/bin/env bash
# Runs every test this machine allows, then lists those it could not run and why.
# Arguments go to `cargo test`. SPAWNSCOPE_TEST_REQUIRE turns "could not run" into a failure (see CONTRIBUTING.md).
set -euo pipefail
cd "$(dirname "$0")/.."

if scripts/python-environment.sh >&2; then
    export SPAWNSCOPE_TEST_PYTHON=$PWD/target/venv/bin/python
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
cargo test --workspace --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?

echo
if grep -q '^test .* \.\.\. ignored' "$log"; then
    echo "could not run here:"
    # Three ways to give the reason: `NAME ... ignored, REASON` (libtest), `NAME ... ignored (REASON)` and
    # `[REASON] NAME ... ignored` (libtest-mimic).
    sed -nE \
        -e 's/^test \[(.*)\] (.*[^ ]) *\.\.\. ignored$/  \2: \1/p' -e t \
        -e 's/^test (.*[^ ]) *\.\.\. ignored \((.*)\)$/  \1: \2/p' -e t \
        -e 's/^test (.*[^ ]) *\.\.\. ignored,? ?(.*)$/  \1: \2/p' "$log"
else
    echo "every test was run"
fi
exit "$status"
