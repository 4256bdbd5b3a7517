#!/usr/bin/env bash
# Unpacks Debian packages for another architecture into a directory, without installing them or changing this machine's package manager:
#     scripts/foreign-packages.sh ARCHITECTURE DIRECTORY [--with-dependencies] PACKAGE...
# such as `arm64 target/sysroot libelf-dev`. The packages come from this machine's own package sources, or from those in the file SOURCES
# (a sources.list).
set -euo pipefail

[ $# -ge 3 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
architecture=$1 directory=$2
shift 2
resolves=
if [ "$1" = --with-dependencies ]; then
    resolves=1
    shift
fi

# apt gets directories of its own, in which no package counts as installed; only the package sources are the system's.
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/packages"
: > "$state/status"
options=(
    -qq -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o APT::Sandbox::User=root
    -o "Dir::State=$state" -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache"
)
if [ -n "${SOURCES:-}" ]; then
    options+=(-o "Dir::Etc::sourcelist=$(realpath "$SOURCES")" -o Dir::Etc::sourceparts=/nonexistent)
fi
# apt prints a notice for each source without this architecture, and skips it.
apt-get "${options[@]}" update 2>/dev/null || true

packages=("$@")
if [ -n "$resolves" ]; then
    mapfile -t packages < <(apt-get "${options[@]}" --simulate install --no-install-recommends "$@" |
        sed -n 's/^Inst \([^ :]*\).*/\1/p')
fi
[ ${#packages[@]} -gt 0 ] || { echo "no packages for $architecture: $*" >&2; exit 1; }
(cd "$state/packages" && apt-get "${options[@]}" download "${packages[@]}")
mkdir -p "$directory"
for package in "$state/packages"/*.deb; do
    dpkg -x "$package" "$directory"
done
