#!/usr/bin/env bash
# Runs every test this machine allows, then lists those it could not run and why.
# Arguments go to `cargo test`, and then nothing else is run. SPAWNSCOPE_TEST_REQUIRE turns "could not run" into a failure (see CONTRIBUTING.md).
set -euo pipefail
cd "$(dirname "$0")/.."

if scripts/python-environment.sh >&2; then
    export SPAWNSCOPE_TEST_PYTHON=$PWD/target/venv/bin/python
fi

scripts/scanner-daemons.sh >&2 || echo "the scanners' daemons could not be unpacked: their tests will say so" >&2
scripts/interpreter-roots.sh >&2 || echo "the interpreters of Debian's suites could not be unpacked: their tests will say so" >&2

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# A background job has Ctrl-C ignored, and one of nohup hang-ups, which some tests send.
env --default-signal=HUP,INT,QUIT,PIPE cargo test --workspace --features vspawn/tokio --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?

# Whether the need is named, which the tests of the wheel look at too.
required() { [[ ",${SPAWNSCOPE_TEST_REQUIRE:-}," == *",$1,"* ]]; }

if [ $# -eq 0 ]; then
    echo
    if scripts/python-wheel.sh >&2; then
        target/venv/bin/python -m pytest crates/vspawn-python 2>&1 | tee -a "$log" || status=$?
    elif required python; then
        echo "the Python wheel could not be built, and SPAWNSCOPE_TEST_REQUIRE names \`python\`" >&2
        status=1
    else
        # As libtest says it, for the list below.
        echo "test vspawn-python ... ignored, the wheel could not be built: see above" | tee -a "$log"
    fi
fi

echo
if grep -qE '^test .* \.\.\. ignored|^SKIPPED ' "$log"; then
    echo "could not run here:"
    # Four ways to give the reason: `NAME ... ignored, REASON` (libtest), `NAME ... ignored (REASON)` and
    # `[REASON] NAME ... ignored` (libtest-mimic), `SKIPPED [COUNT] PLACE: REASON` (pytest).
    sed -nE \
        -e 's/^SKIPPED (\[[0-9]+\]) ([^ ]*): (.*)$/  \2 \1: \3/p' -e t \
        -e 's/^test \[(.*)\] (.*[^ ]) *\.\.\. ignored$/  \2: \1/p' -e t \
        -e 's/^test (.*[^ ]) *\.\.\. ignored \((.*)\)$/  \1: \2/p' -e t \
        -e 's/^test (.*[^ ]) *\.\.\. ignored,? ?(.*)$/  \1: \2/p' "$log"
else
    echo "every test was run"
fi
exit "$status"
