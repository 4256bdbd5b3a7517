#!/usr/bin/env bash
# Downloads packages of a suite of Debian's, with all that they need, whatever suite this machine has; nothing is installed.
#   suite-packages.sh SUITE FOLDER PACKAGE...
# The suite comes from where this machine's own apt takes its packages. Lists stay in target/apt/SUITE, and are fetched once.
set -euo pipefail

suite=$1 folder=$(mkdir -p "$2" && realpath "$2")
shift 2
cd "$(dirname "$0")/.."

state=$PWD/target/apt/$suite
mkdir -p "$state/lists/partial" "$state/cache" "$folder/partial"
: >"$state/installed"
mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL) $(SUITE)' | awk '$2 == "Debian" && $3 !~ /-/ { print $1; exit }')
[ -n "$mirror" ] || { echo "apt has no source of Debian's packages here: Debian's suites cannot be had" >&2; exit 1; }
echo "deb $mirror $suite main" >"$state/sources.list"
cat >"$state/apt.conf" <<CONFIGURATION
Dir::Etc::SourceList "$state/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State::Lists "$state/lists";
Dir::State::Status "$state/installed";
Dir::Cache "$state/cache";
Dir::Cache::Archives "$folder";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb-src::Sources::DefaultEnabled "false";
Debug::NoLocking "true";
CONFIGURATION
export APT_CONFIG=$state/apt.conf

download() { apt-get -qq --yes --download-only install "$@"; }
if ! ls "$state"/lists/*_InRelease >/dev/null 2>&1; then
    apt-get -qq update
    download "$@"
else # lists may be older than the packages that are there
    download "$@" 2>/dev/null || { apt-get -qq update && download "$@"; }
fi
