#!/usr/bin/env bash
# Creates target/scanners with the daemons of ClamAV and fapolicyd: unpacks Debian's packages and those dependencies that this system lacks;
# nothing is installed. The tests that need them are optional, unless SPAWNSCOPE_TEST_REQUIRE contains `scanners`.
set -euo pipefail
cd "$(dirname "$0")/.."

root=target/scanners
if [ -e "$root/complete" ]; then
    exit 0
fi
rm -rf "$root"
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT

# Prints the names of both packages, even if they are installed, and of their dependencies that are not installed.
list_packages() {
    {
        printf '%s\n' clamav-daemon fapolicyd
        apt-get --simulate install --no-install-recommends clamav-daemon fapolicyd | sed -n 's/^Inst \([^ ]*\) .*/\1/p'
    } | sort -u
}

# Package lists may be missing or old.
names=$(list_packages 2>/dev/null) || { apt-get -qq update && names=$(list_packages); }
(cd "$packages" && { apt-get -qq -o APT::Sandbox::User=root download $names ||
    { apt-get -qq update && apt-get -qq -o APT::Sandbox::User=root download $names; }; })
mkdir -p "$root"
for package in "$packages"/*.deb; do
    dpkg -x "$package" "$root"
done
touch "$root/complete"
