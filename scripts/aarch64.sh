#!/usr/bin/env bash
# Runs a command with the environment that cargo needs to build for aarch64 on another machine, and to run the result under qemu-user:
#     scripts/aarch64.sh cargo test -p vspawn --lib --target aarch64-unknown-linux-gnu
# or, with --program, a program that was built that way:
#     scripts/aarch64.sh --program target/aarch64-unknown-linux-gnu/debug/spawnscope --version
# `scripts/install-dependencies.sh aarch64` installs the tools; this script unpacks libelf and zlib for aarch64 into target/sysroot-aarch64.
set -euo pipefail
cd "$(dirname "$0")/.."

sysroot=$PWD/target/sysroot-aarch64
if ! [ -e "$sysroot/complete" ]; then
    rm -rf "$sysroot"
    scripts/foreign-packages.sh arm64 "$sysroot" libelf-dev libelf1 zlib1g-dev zlib1g >&2
    touch "$sysroot/complete"
fi
libraries=$sysroot/usr/lib/aarch64-linux-gnu
runner=()
if [ "$(uname -m)" != aarch64 ]; then
    runner=(qemu-aarch64-static -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=$libraries:$sysroot/lib/aarch64-linux-gnu")
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="${runner[*]}"
fi
if [ "${1-}" = --program ]; then
    shift
    exec "${runner[@]}" "$@"
fi
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export CFLAGS_aarch64_unknown_linux_gnu="-I$sysroot/usr/include"
export LIBBPF_SYS_LIBRARY_PATH_aarch64_unknown_linux_gnu=$libraries
export PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_LIBDIR=$libraries/pkgconfig PKG_CONFIG_SYSROOT_DIR=$sysroot
exec "$@"
