#!/usr/bin/env bash
# Packs the npm package with a debug build, unpacks it, and tests it: its behaviour beside that of child_process, its types, and its README.
# NODE is the interpreter.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/install-dependencies.sh tests
node=${NODE:-node}
# Only what is tested here, and only types: Node's own are those of the oldest supported version.
npm install --silent --no-audit --no-fund --no-save --ignore-scripts --prefix target/node-tools typescript@7.0.2 @types/node@18.19.130

cargo build --locked -p vspawn-node
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
scripts/node-package.sh "$top" "$(uname -m)=target/debug/libvspawn_node.so"
tar -xzf "$top"/vspawn-*.tgz -C "$top"
cp -r crates/vspawn-node/test "$top/package"

cd "$top/package"
ln -s "$OLDPWD/target/node-tools/node_modules" .
node_modules/.bin/tsc --noEmit --strict --target es2022 --module nodenext --types node test/types.ts
timeout 300 "$node" --test test/*.test.mjs
