#!/usr/bin/env bash
# Builds the distributed programs and libraries for the architecture given as argument, with zig as C compiler and linker, against the
# oldest supported C library. Everything except that C library is linked statically. As in every build, clang builds the BPF object.
. "$(dirname "$0")/settings.sh"
for_architecture "$1"

# Remap the paths of the build machine: they would make builds differ, and reveal information about it.
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
maps=("$PWD=spawnscope" "$(rustc --print sysroot)=rust")
for index in "$registry"/*/; do maps+=("${index%/}=crates"); done
export RUSTFLAGS="${maps[*]/#/--remap-path-prefix=}"
# The crate cc reads this variable, also when libbpf-sys uses it.
declare -x "CFLAGS_${TARGET//-/_}=${maps[*]/#/-ffile-prefix-map=}"
# Stripped, as in distributions.
export CARGO_PROFILE_RELEASE_STRIP=symbols

cargo zigbuild --release --locked --target "$TARGET.$GLIBC" -p spawnscope --features vendored
cargo zigbuild --release --locked --target "$TARGET.$GLIBC" -p vspawn-capi
cargo zigbuild --release --locked --target "$TARGET.$GLIBC" -p vspawn-node
cargo zigbuild --profile preload --locked --target "$TARGET.$GLIBC" -p vspawn-preload
binaries=("$BUILT/spawnscope" "$BUILT/libvspawn.so" "$BUILT/libvspawn_node.so" "$BUILT/../preload/libvspawn_preload.so")
scripts/dist/needs.sh check "${binaries[@]}"
for path in "$PWD" "$registry" "$(rustc --print sysroot)"; do
    ! grep -qaF "$path" "${binaries[@]}" ||
        fail "$path is in the binaries of $BUILT: see --remap-path-prefix"
done
maturin build --zig --release --locked --target "$TARGET" --compatibility "$MANYLINUX" \
    --manifest-path crates/vspawn-python/Cargo.toml --out "$DIST"
