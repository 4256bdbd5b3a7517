#!/usr/bin/env bash
# Checks the dependencies with cargo-deny: licences, sources, wildcards, and known vulnerabilities. Uses an installed cargo-deny, or
# otherwise builds one into target/tools, without optimization, which takes about a minute. The list of vulnerabilities comes from
# GitHub; without access to it, that check is skipped, and a line says so.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.20.2

if ! deny=$(command -v cargo-deny); then
    deny=target/tools/bin/cargo-deny
    [ "$("$deny" --version 2>/dev/null)" = "cargo-deny $version" ] ||
        cargo install cargo-deny --version "$version" --locked --debug --quiet --root target/tools
fi
check() {
    "$deny" --all-features --config deny.toml check --allow license-exception-not-encountered "$@"
}

check licenses bans sources
if "$deny" fetch db 2>/dev/null; then
    check advisories
else
    echo "SKIPPED: known vulnerabilities were not checked, since the RustSec database cannot be fetched" >&2
fi
