#!/usr/bin/env bash
# Runs every test this machine allows, then lists those it could not run and why.
# Arguments go to `cargo test`. SPAWNSCOPE_TEST_REQUIRE turns "could not run" into a failure (see CONTRIBUTING.md).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/python-environment.sh >&2 || echo "no Python environment: the trace export is not checked" >&2

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
cargo test --workspace --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?

echo
# libtest writes `test NAME ... ignored, REASON`, libtest-mimic `test NAME ... ignored (REASON)`.
if grep -q '^test .* \.\.\. ignored' "$log"; then
    echo "could not run here:"
    sed -n 's/^test \(.*[^ ]\) *\.\.\. ignored[, ]*(\{0,1\}\(.*[^)]\))\{0,1\}$/  \1: \2/p' "$log"
else
    echo "every test was run"
fi
exit "$status"
