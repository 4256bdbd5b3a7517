#!/usr/bin/env bash
# Moves generated files to their directories, as a package's script does. Usage: relocate.sh [STEP] [FILES], 20,000 by default.
# STEP slow runs `dirname` and `mv` for each file; builtin uses the shell instead of `dirname`; batch also runs only one `mv` per directory.
# Works in a temporary directory.
set -euo pipefail

step=${1:-slow}
files=${2:-20000}
work=$(mktemp -d "${TMPDIR:-/tmp}/relocate.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

mkdir parcel
for ((number = 0; number < files; number++)); do
    : >"parcel/file$number"
    echo "usr/share/doc/section$((number % 50))/file$number"
done >listing
mkdir -p usr/share/doc/section{0..49}

slow() {
    while read -r path; do
        directory=$(dirname "$path")
        mv "parcel/${path##*/}" "$directory/"
    done
}

builtin_only() {
    while read -r path; do
        directory=${path%/*}
        mv "parcel/${path##*/}" "$directory/"
    done
}

batch() {
    declare -A names
    while read -r path; do
        names[${path%/*}]+="parcel/${path##*/} "
    done
    for directory in "${!names[@]}"; do
        # The names contain no spaces.
        mv -t "$directory" ${names[$directory]}
    done
}

case $step in
    slow) slow <listing ;;
    builtin) builtin_only <listing ;;
    batch) batch <listing ;;
    *) echo "relocate.sh: no such step: $step" >&2; exit 2 ;;
esac
moved=(usr/share/doc/*/*)
echo "moved ${#moved[@]} files"
