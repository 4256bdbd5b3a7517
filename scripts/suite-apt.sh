#!/usr/bin/env bash
# Prints the path of a configuration file with which apt's programs (APT_CONFIG=... apt-get, apt-cache) see one Debian suite and no installed
# packages, whatever this machine's suite and architecture are. Lists and state are in target/apt; those of the system are not changed.
#   suite-apt.sh SUITE [ARCHITECTURE]
# The mirror is that of this machine's own packages. Lists older than a day are downloaded again.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=$1 architecture=${2:-$(dpkg --print-architecture)}
state=$PWD/target/apt/$suite-$architecture

# Security updates have their own mirror.
label=Debian
[[ $suite != *-security ]] || label=Debian-Security
mirror() { # labels come from package lists; a new system has no lists, so the address decides
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' | awk -v label="$label" '
        { found = $2 == "" ? ($1 ~ /\/debian\/$/ ? "Debian" : $1 ~ /\/debian-security\/$/ ? "Debian-Security" : "") : $2 }
        found == label && address == "" { address = $1 } END { print address }'
}

mkdir -p "$state"/{lists,archives}/partial "$state/cache"
: >"$state/installed"
cat >"$state/apt.conf" <<CONFIGURATION
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::IndexTargets::deb-src::Sources::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Languages "none";
// Suites without support are not signed anew.
Acquire::Check-Valid-Until "false";
Debug::NoLocking "true";
Dir::Cache "$state/cache";
Dir::Cache::Archives "$state/archives";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::Etc::SourceList "$state/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$state/lists";
Dir::State::Status "$state/installed";
CONFIGURATION

if [ -z "$(find "$state/fetched" -mtime -1 2>/dev/null)" ]; then
    address=$(mirror)
    [ -n "$address" ] || { echo "apt has no source of $label packages on this machine: $suite is not available" >&2; exit 1; }
    echo "deb $address $suite main" >"$state/sources.list"
    APT_CONFIG=$state/apt.conf apt-get -qq update >&2
    touch "$state/fetched"
fi
echo "$state/apt.conf"
