#!/usr/bin/env bash
# Unpacks a package the slow way: a shell loop runs `dirname` and `mv` for each path. Most of the time is spent
# on starting these programs. Usage: unpack.sh [COUNT]; COUNT is the number of paths, 2,000 by default. Works in a temporary directory.
set -euo pipefail

count=${1:-2000}
work=$(mktemp -d "${TMPDIR:-/tmp}/unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

mkdir parcel
for ((number = 0; number < count; number++)); do
    directory=usr/share/doc/section$((number % 50))
    : >"parcel/file$number"
    echo "$directory/file$number"
done >listing
mkdir -p usr/share/doc/section{0..49}

while read -r path; do
    directory=$(dirname "$path")
    mv "parcel/${path##*/}" "$directory/"
done <listing

echo "unpacked $count files"
