#!/usr/bin/env bash
# Packs the npm package of crates/vspawn-node into a directory, with a library for each architecture. COPYRIGHT, if set, is a file with the
# notices of what is linked into the libraries. npm writes the same bytes for the same files.
#   node-package.sh DIRECTORY ARCHITECTURE=LIBRARY...
set -euo pipefail
cd "$(dirname "$0")/.."

directory=$(realpath "$1")
shift
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -rL crates/vspawn-node/{package.json,README.md,LICENSE-APACHE,LICENSE-MIT,index.d.ts,lib} "$stage"
[ -z "${COPYRIGHT:-}" ] || cp "$COPYRIGHT" "$stage/copyright"
for library in "$@"; do
    # Node's names of the architectures.
    case ${library%%=*} in
        x86_64) cpu=x64 ;;
        aarch64) cpu=arm64 ;;
        *) echo "unknown architecture ${library%%=*}" >&2 && exit 1 ;;
    esac
    install -D -m 755 "${library#*=}" "$stage/native/linux-$cpu.node"
    cpus+=("\"$cpu\"")
done
cd "$stage"
npm pkg set "version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$OLDPWD/Cargo.toml")"
npm pkg set --json "cpu=[$(IFS=, && echo "${cpus[*]}")]"
npm pack --silent --pack-destination "$directory"
