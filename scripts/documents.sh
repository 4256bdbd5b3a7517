#!/usr/bin/env bash
# Renews what the documents show: the recording of examples/unpack.sh, the output below each `<!-- run on ... -->`, and the
# picture of the page. The tests `docs` and scripts/html-tests.sh fail if one of them is not current. Needs root, and a quiet
# machine for times that are worth showing. `--keep` keeps the recording, and SPAWNSCOPE is another program to record with.
# Look at the difference before you commit it.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/test-binary.sh
[ "${1:-}" = --keep ] || scripts/record-example.py "${SPAWNSCOPE:-target/debug/spawnscope}"
SHOWN=overwrite cargo test --locked --workspace --features vspawn/tokio --test docs
SPAWNSCOPE=$PWD/target/debug/spawnscope GOLDEN=overwrite scripts/html-tests.sh
git status --short crates/spawnscope/tests/recordings crates/spawnscope/html/tests/golden docs README.md
