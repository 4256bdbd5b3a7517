#!/usr/bin/env bash
# Runs the tests that this machine supports, then lists the skipped tests and the reasons. With arguments, runs only `cargo test` with these
# arguments. Tests whose needs are in SPAWNSCOPE_TEST_REQUIRE fail instead of being skipped (see CONTRIBUTING.md). scripts/slow-checks.tsv has
# the tests that take long.
set -euo pipefail
cd "$(dirname "$0")/.."

if scripts/python-environment.sh >&2; then
    export SPAWNSCOPE_TEST_PYTHON=$PWD/target/venv/bin/python
fi

log=$(mktemp)
# The workloads are compiled once for all suites. Other users must be able to run them.
SPAWNSCOPE_TEST_WORKLOADS=$(mktemp --directory)
export SPAWNSCOPE_TEST_WORKLOADS
chmod 755 "$SPAWNSCOPE_TEST_WORKLOADS"
trap 'rm -rf "$log" "$SPAWNSCOPE_TEST_WORKLOADS"' EXIT
status=0
# A background job ignores SIGINT, and one under nohup ignores SIGHUP; some tests send these signals.
env --default-signal=HUP,INT,QUIT,PIPE cargo test --workspace --locked --features vspawn/tokio --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?

echo
if grep -qE '^test .* \.\.\. ignored' "$log"; then
    echo "skipped tests:"
    # Three formats of the reason: `NAME ... ignored, REASON` (libtest), `NAME ... ignored (REASON)` and
    # `[REASON] NAME ... ignored` (libtest-mimic).
    sed -nE \
        -e 's/^test \[(.*)\] (.*[^ ]) *\.\.\. ignored$/  \2: \1/p' -e t \
        -e 's/^test (.*[^ ]) *\.\.\. ignored \((.*)\)$/  \1: \2/p' -e t \
        -e 's/^test (.*[^ ]) *\.\.\. ignored,? ?(.*)$/  \1: \2/p' "$log"
else
    echo "no test was skipped"
fi
exit "$status"
