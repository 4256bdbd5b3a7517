# Sourced by the other scripts of this folder: what is built, with which tools, and where it goes. Changes to the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# The oldest C library that the programs run with: Debian 11's, and Ubuntu 20.04's.
GLIBC=2.31
# PEP 600's name for the oldest C library that the wheels run with. Rust's own library needs that one.
MANYLINUX=manylinux_2_17
PYTHON_TOOLS=(cargo-zigbuild==0.24.0 maturin==1.16.0 ziglang==0.17.1)
CARGO_TOOLS=(cargo-deb@3.8.0 cargo-generate-rpm@0.21.1)

VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
TOOLS=target/tools
DIST=target/dist
# Archives and packages have this time in them, so that the same commit gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
export PATH=$PWD/$TOOLS/venv/bin:$PWD/$TOOLS/bin:$PATH
# As the user's shell would make them: modes go into archives.
umask 022

fail() {
    echo "$*" >&2
    exit 1
}

# Names of an architecture: Rust's is the argument.
for_architecture() {
    ARCH=$1
    TARGET=$ARCH-unknown-linux-gnu
    case $ARCH in
    x86_64) DEBIAN=amd64 ;;
    aarch64) DEBIAN=arm64 ;;
    *) fail "unknown architecture $ARCH: x86_64 and aarch64 are known" ;;
    esac
    BUILT=target/$TARGET/release
    # What the packages consist of besides the programs; cargo-deb and cargo-generate-rpm find it as target/release/dist.
    PARTS=$BUILT/dist
    ROOTS=target/dist-roots/$ARCH
    TREE=$PARTS/spawnscope-$VERSION-$ARCH-linux
}
