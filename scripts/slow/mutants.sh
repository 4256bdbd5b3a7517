#!/usr/bin/env bash
# Records a small build, and runs every verb on recordings that are changed at random. Argument: the
# number of changed recordings. The commit is the seed, so that each commit tries other changes.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/test-binary.sh
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
script='for i in 1 2 3; do basename "/a/$i"; done; (sleep 0.05; false) & make -s -f - <<<"all:; @sh -c \"expr 1 + 1\"; uname | cat"; wait'
target/debug/spawnscope record -q -o "$directory/recording.db" -- bash -c "$script" >/dev/null
scripts/mutants.py --seed "$(git rev-parse HEAD)" --count "$1" target/debug/spawnscope "$directory/recording.db"
