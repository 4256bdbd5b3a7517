#!/usr/bin/env bash
# Runs the live tests that have one of the slow needs: scripts/slow/live-tests.sh NEED SUITE... The tests must not be skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."

need=$1
shift
case $need in
    roots) scripts/interpreter-roots.sh ;;
    scanners) scripts/scanner-daemons.sh ;;
esac
export SPAWNSCOPE_TEST_SLOW=$need SPAWNSCOPE_TEST_REQUIRE=${SPAWNSCOPE_TEST_REQUIRE:+$SPAWNSCOPE_TEST_REQUIRE,}$need
scripts/test.sh "${@/#/--test=}"
