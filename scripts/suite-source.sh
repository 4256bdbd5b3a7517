#!/usr/bin/env bash
# Downloads the source package of a Debian suite into a directory; nothing is installed. See suite-apt.sh.
#   suite-source.sh SUITE DIRECTORY PACKAGE
set -euo pipefail

suite=$1 directory=$(mkdir -p "$2" && realpath "$2") package=$3
cd "$(dirname "$0")/.."

configuration=$(scripts/suite-apt.sh "$suite")
state=$(dirname "$configuration")/sources
mkdir -p "$state/lists/partial"
# Packages and sources have the same address, but separate directories for lists, since apt removes lists that are not in its sources.
sed 's/^deb /deb-src /' "${state%/sources}/sources.list" >"$state/sources.list"
export APT_CONFIG=$configuration
apt=(apt-get -qq -o "Dir::Etc::SourceList=$state/sources.list" -o "Dir::State::Lists=$state/lists"
    -o Acquire::IndexTargets::deb-src::Sources::DefaultEnabled=true)
[ -n "$(find "$state/fetched" -mtime -1 2>/dev/null)" ] || { "${apt[@]}" update >&2 && touch "$state/fetched"; }
cd "$directory"
"${apt[@]}" --only-source --download-only source "$package" >&2
