#!/usr/bin/env bash
# Checks what would be published, outside of the workspace and from the packaged files only: that the
# packages are complete, and that each one compiles with the features that it asks for itself. They
# share the target directory of the tests; `cargo package` would compile all dependencies once more.
set -euo pipefail
cd "$(dirname "$0")/../.."

rm -rf target/package
cargo package --quiet --locked --no-verify --workspace \
    --exclude vspawn-capi --exclude vspawn-node --exclude vspawn-preload --exclude vspawn-python
unpacked=target/package/unpacked
mkdir "$unpacked"
cp Cargo.lock "$unpacked"
{
    printf '[workspace]\nresolver = "3"\nmembers = ["*"]\n\n[patch.crates-io]\n'
    for package in target/package/*.crate; do
        # Cargo compares times, and those in a package never change.
        tar -xmf "$package" -C "$unpacked"
        name=$(basename "$package" .crate)
        printf '%s = { path = "%s" }\n' "${name%-*}" "$name"
    done
    # With other profiles, nothing in the target directory could be used again.
    sed -n '/^\[profile/,$p' Cargo.toml
} >"$unpacked/Cargo.toml"
for package in "$unpacked"/*/; do
    name=$(basename "$package")
    echo "checking $name"
    cargo check --quiet --offline --manifest-path "$unpacked/Cargo.toml" --target-dir target -p "${name%-*}"
done
rm -rf target/package
