#!/usr/bin/env bash
# Creates target/scanners with the daemons of ClamAV and fapolicyd: Debian's packages and their dependencies beyond this system, unpacked
# and never installed. The tests that need them are optional unless SPAWNSCOPE_TEST_REQUIRE names the need.
set -euo pipefail
cd "$(dirname "$0")/.."

root=target/scanners
if [ -e "$root/complete" ]; then
    exit 0
fi
rm -rf "$root"
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT

# Both packages, even if they are installed, and their dependencies that are not.
wanted() {
    {
        printf '%s\n' clamav-daemon fapolicyd
        apt-get --simulate install --no-install-recommends clamav-daemon fapolicyd | sed -n 's/^Inst \([^ ]*\) .*/\1/p'
    } | sort -u
}

# Package lists may be missing or old.
missing=$(wanted 2>/dev/null) || { apt-get -qq update && missing=$(wanted); }
(cd "$packages" && { apt-get -qq -o APT::Sandbox::User=root download $missing ||
    { apt-get -qq update && apt-get -qq -o APT::Sandbox::User=root download $missing; }; })
mkdir -p "$root"
for package in "$packages"/*.deb; do
    dpkg -x "$package" "$root"
done
touch "$root/complete"
