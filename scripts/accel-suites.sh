#!/usr/bin/env bash
# Runs test suites without and with libvspawn_preload.so, and compares the result of each test:
#   accel-suites.sh                           of the Pythons in PATH that have their tests, and of perl's -e launches
#   accel-suites.sh FOLDER COMMAND...         of an unpacked and built source package: bash, make, git, perl
# as in `accel-suites.sh ~/make-4.3 make check` or `accel-suites.sh ~/git-2.39/t prove -v t0000-basic.sh`. The library is taken from
# target/preload, or from $VSPAWN_PRELOAD. Times and pids in lines of the output are masked; what then differs is printed.
set -euo pipefail
cd "$(dirname "$0")/.."
library=$(realpath "${VSPAWN_PRELOAD:-target/preload/libvspawn_preload.so}")
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
failed=0

# Only what a test's result is: times, pids and temporary names differ from run to run.
masked() {
    sed -E -e 's/[0-9]+(\.[0-9]+)? ?(s|ms|sec|seconds|min)\b/TIME/g' -e 's/0x[0-9a-f]+/ADDRESS/g' -e 's/\b[0-9]{3,}\b/N/g' \
        -e 's/tmp[A-Za-z0-9_]{6,}/TMP/g'
}

# compare NAME FILTER COMMAND...: FILTER keeps the lines that are results.
compare() {
    local name=$1 filter=$2 status=0
    shift 2
    for run in without with; do
        (
            if [ "$run" = with ]; then export LD_PRELOAD=$library; fi
            timeout 1800 "$@" </dev/null 2>&1
            echo "status $?"
        ) | masked | grep -aE "$filter|^status" | sort >"$results/$run" || true
    done
    diff "$results/without" "$results/with" || status=1
    echo "$name: $(wc -l <"$results/with") results, $([ $status = 0 ] && echo "the same" || echo "DIFFERENT")"
    failed=$((failed | status))
}

if [ $# -gt 0 ]; then
    cd "$1"
    shift
    compare "$*" . "$@"
else
    for python in ${PYTHONS:-python3}; do
        "$python" -c 'import test.test_subprocess' 2>/dev/null || { echo "SKIPPED: $python has no tests" >&2; continue; }
        for module in test_subprocess test_os test_popen test_posix; do
            compare "$python $module" ' \.\.\. |^(FAIL|ERROR)' "$python" -m unittest -v "test.$module"
        done
    done
fi
exit "$failed"
