#!/usr/bin/env bash
# Installs the additional tools for `make dist`: pinned versions of the packaging tools into target/tools, and Rust's standard library for
# an architecture. `scripts/install-dependencies.sh dist` installs the system's packages.
. "$(dirname "$0")/settings.sh"

for arch in "$@"; do
    for_architecture "$arch"
    [ -e "$(rustc --print sysroot)/lib/rustlib/$TARGET" ] || rustup target add "$TARGET"
done

[ -x "$TOOLS/venv/bin/python" ] || python3 -m venv "$TOOLS/venv"
"$TOOLS/venv/bin/pip" install --quiet --disable-pip-version-check "${PYTHON_TOOLS[@]}"
# Does nothing if that version is installed. The tools run for seconds, so compiling them with their own release profiles, or in 16 units with
# debug information, would take longer than it saves.
CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    cargo install --quiet --locked --root "$TOOLS" "${CARGO_TOOLS[@]}"
