#!/usr/bin/env bash
# Checks `spawnscope mcp` with the protocol's own clients for Python (which speaks the version without a handshake, and the one before) and
# for TypeScript. Installs them into target/mcp-clients. Needs python3, node and npm. SPAWNSCOPE is the program to test (default:
# target/debug/spawnscope, which is built).
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${SPAWNSCOPE:-}" ]; then
    scripts/test-binary.sh
    SPAWNSCOPE=$PWD/target/debug/spawnscope
fi
clients=target/mcp-clients
mkdir -p "$clients"
python3 -m venv "$clients/venv"
"$clients/venv/bin/pip" install --quiet --disable-pip-version-check mcp==2.3.0
npm install --prefix "$clients" --no-save --no-audit --no-fund --ignore-scripts @modelcontextprotocol/sdk@1.32.2
# Node finds packages beside the program that imports them.
cp scripts/mcp-clients/client.mjs "$clients"
recordings=$(mktemp -d)
trap 'rm -rf "$recordings"' EXIT
timeout 120 "$clients/venv/bin/python" scripts/mcp-clients/client.py "$SPAWNSCOPE" "$recordings"
timeout 120 node "$clients/client.mjs" "$SPAWNSCOPE" "$recordings"
