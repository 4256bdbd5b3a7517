#!/usr/bin/env bash
# Builds the wheel of crates/vspawn-python into target/wheels and installs it into target/venv, together with the tools for its tests.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=target/venv
wheels=target/wheels
[ -x "$environment/bin/python" ] || python3 -m venv "$environment"
pip() { "$environment/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }

if ! "$environment/bin/python" -c 'import maturin, mypy, pytest' 2>/dev/null; then
    pip install 'maturin>=1.9,<2' mypy pytest
fi
rm -rf "$wheels"
"$environment/bin/maturin" build --release --locked --quiet --manifest-path crates/vspawn-python/Cargo.toml --out "$wheels"
# The version is the same in each build: without force, pip would keep the installed wheel.
pip install --no-index --no-deps --force-reinstall "$wheels"/vspawn-*.whl
