#!/usr/bin/env bash
# Builds docs/ as a book in target/book, with a pinned version of mdBook in target/tools. Fails if a page that docs/SUMMARY.md lists
# does not exist. The test `docs` of crates/spawnscope checks links, commands and shown output.
set -euo pipefail
cd "$(dirname "$0")/.."

MDBOOK=mdbook@0.5.4
tools=$PWD/target/tools
# Does nothing if that version is installed.
cargo install --quiet --locked --debug --no-default-features --root "$tools" "$MDBOOK"
PATH=$tools/bin:$PATH mdbook build
echo "the book is target/book/index.html"
