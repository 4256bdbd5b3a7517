#!/usr/bin/env bash
# Runs every test that this machine supports, then lists the skipped tests and the reasons. With arguments, runs only `cargo test` with these
# arguments. Tests whose needs are in SPAWNSCOPE_TEST_REQUIRE fail instead of being skipped (see CONTRIBUTING.md).
set -euo pipefail
cd "$(dirname "$0")/.."

if scripts/python-environment.sh >&2; then
    export SPAWNSCOPE_TEST_PYTHON=$PWD/target/venv/bin/python
fi

scripts/scanner-daemons.sh >&2 || echo "the scanner daemons could not be unpacked: their tests will be skipped" >&2
scripts/interpreter-roots.sh >&2 || echo "the interpreters of Debian's suites could not be unpacked: their tests will be skipped" >&2

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# A background job ignores SIGINT, and one under nohup ignores SIGHUP; some tests send these signals.
env --default-signal=HUP,INT,QUIT,PIPE cargo test --workspace --features vspawn/tokio --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?

# is_required NEED: whether a need is required. The wheel's tests check the same variable.
is_required() { [[ ",${SPAWNSCOPE_TEST_REQUIRE:-}," == *",$1,"* ]]; }

if [ $# -eq 0 ]; then
    echo
    if scripts/python-wheel.sh >&2; then
        target/venv/bin/python -m pytest crates/vspawn-python 2>&1 | tee -a "$log" || status=$?
    elif is_required python; then
        echo "the Python wheel could not be built, and SPAWNSCOPE_TEST_REQUIRE names \`python\`" >&2
        status=1
    else
        # In libtest's format, for the list below.
        echo "test vspawn-python ... ignored, the wheel could not be built: see above" | tee -a "$log"
    fi
fi

echo
if grep -qE '^test .* \.\.\. ignored|^SKIPPED ' "$log"; then
    echo "skipped tests:"
    # Four formats of the reason: `NAME ... ignored, REASON` (libtest), `NAME ... ignored (REASON)` and
    # `[REASON] NAME ... ignored` (libtest-mimic), `SKIPPED [COUNT] PLACE: REASON` (pytest).
    sed -nE \
        -e 's/^SKIPPED (\[[0-9]+\]) ([^ ]*): (.*)$/  \2 \1: \3/p' -e t \
        -e 's/^test \[(.*)\] (.*[^ ]) *\.\.\. ignored$/  \2: \1/p' -e t \
        -e 's/^test (.*[^ ]) *\.\.\. ignored \((.*)\)$/  \1: \2/p' -e t \
        -e 's/^test (.*[^ ]) *\.\.\. ignored,? ?(.*)$/  \1: \2/p' "$log"
else
    echo "no test was skipped"
fi
exit "$status"
