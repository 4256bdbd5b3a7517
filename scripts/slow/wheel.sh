#!/usr/bin/env bash
# Builds the Python wheel, and runs its tests.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/python-wheel.sh
target/venv/bin/python -m pytest crates/vspawn-python
