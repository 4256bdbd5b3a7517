#!/usr/bin/env bash
# Builds the programs and libraries that are distributed, for the architecture that is the argument: with zig as compiler and linker of
# C, against a C library as old as is promised. Everything but that C library is linked statically. The BPF object is clang's, as in every build.
. "$(dirname "$0")/settings.sh"
for_architecture "$1"

# No path of the machine that builds: they would differ from machine to machine, and tell about it.
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
maps=("$PWD=spawnscope" "$(rustc --print sysroot)=rust")
for index in "$registry"/*/; do maps+=("${index%/}=crates"); done
export RUSTFLAGS="${maps[*]/#/--remap-path-prefix=}"
# cc's name for the variable, and libbpf-sys's through it.
declare -x "CFLAGS_${TARGET//-/_}=${maps[*]/#/-ffile-prefix-map=}"
# Distributed without symbols, as distributions do.
export CARGO_PROFILE_RELEASE_STRIP=symbols

cargo zigbuild --release --locked --target "$TARGET.$GLIBC" -p spawnscope --features vendored
cargo zigbuild --release --locked --target "$TARGET.$GLIBC" -p vspawn-capi
scripts/dist/needs.sh check "$BUILT/spawnscope" "$BUILT/libvspawn.so"
for path in "$PWD" "$registry" "$(rustc --print sysroot)"; do
    ! grep -qaF "$path" "$BUILT/spawnscope" "$BUILT/libvspawn.so" || fail "$path is in the binaries of $BUILT: see --remap-path-prefix"
done
maturin build --zig --release --locked --target "$TARGET" --compatibility "$MANYLINUX" \
    --manifest-path crates/vspawn-python/Cargo.toml --out "$DIST"
