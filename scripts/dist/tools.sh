#!/usr/bin/env bash
# Installs what `make dist` needs beyond a build: pinned versions of the packaging tools into target/tools, and Rust's own library for
# an architecture. `scripts/install-dependencies.sh dist` has installed what comes from the system.
. "$(dirname "$0")/settings.sh"

for arch in "$@"; do
    for_architecture "$arch"
    [ -e "$(rustc --print sysroot)/lib/rustlib/$TARGET" ] || rustup target add "$TARGET"
done

[ -x "$TOOLS/venv/bin/python" ] || python3 -m venv "$TOOLS/venv"
"$TOOLS/venv/bin/pip" install --quiet --disable-pip-version-check "${PYTHON_TOOLS[@]}"
# Does nothing where that version is there.
cargo install --quiet --locked --root "$TOOLS" "${CARGO_TOOLS[@]}"
