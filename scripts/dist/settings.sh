# Sourced by the other scripts of this directory: what is built, with which tools, and where the results go. Changes to the repository's
# root directory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# The oldest supported C library: that of Debian 11 and Ubuntu 20.04.
GLIBC=2.31
# PEP 600's name for the oldest C library that the wheels support. It is the oldest that Rust's standard library supports.
MANYLINUX=manylinux_2_17
PYTHON_TOOLS=(cargo-zigbuild==0.24.0 maturin==1.16.0 ziglang==0.17.1)
CARGO_TOOLS=(cargo-deb@3.8.0 cargo-generate-rpm@0.21.1)

VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
TOOLS=target/tools
DIST=target/dist
# The modification time in archives and packages, fixed so that the same commit gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
export PATH=$PWD/$TOOLS/venv/bin:$PWD/$TOOLS/bin:$PATH
# A fixed umask, because modes go into archives.
umask 022

fail() {
    echo "$*" >&2
    exit 1
}

# Sets the variables of an architecture. The argument is Rust's name for it.
for_architecture() {
    ARCH=$1
    TARGET=$ARCH-unknown-linux-gnu
    case $ARCH in
    x86_64) DEBIAN=amd64 ;;
    aarch64) DEBIAN=arm64 ;;
    *) fail "unknown architecture $ARCH: x86_64 and aarch64 are supported" ;;
    esac
    BUILT=target/$TARGET/release
    # The other files of the packages; cargo-deb and cargo-generate-rpm find them as target/release/dist.
    PARTS=$BUILT/dist
    ROOTS=target/dist-roots/$ARCH
    TREE=$PARTS/spawnscope-$VERSION-$ARCH-linux
}
