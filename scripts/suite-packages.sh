#!/usr/bin/env bash
# Downloads packages of a Debian suite, with all dependencies, into a directory; nothing is installed. See suite-apt.sh.
#   suite-packages.sh [--arch ARCHITECTURE] SUITE DIRECTORY PACKAGE...
set -euo pipefail

architecture=()
if [ "$1" = --arch ]; then
    architecture=("$2")
    shift 2
fi
suite=$1 directory=$(mkdir -p "$2/partial" && realpath "$2")
shift 2
cd "$(dirname "$0")/.."

download() {
    APT_CONFIG=$(scripts/suite-apt.sh "$suite" "${architecture[@]}")
    export APT_CONFIG
    apt-get -qq --yes --download-only -o "Dir::Cache::Archives=$directory" install "$@"
}
# An old list may name packages that the mirror no longer has.
download "$@" 2>/dev/null || { rm -f target/apt/"$suite"-*/fetched && download "$@"; }
