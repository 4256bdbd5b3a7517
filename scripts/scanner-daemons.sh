#!/usr/bin/env bash
# Makes target/scanners with the daemons of ClamAV and fapolicyd: Debian's packages and what they need beyond this system, unpacked
# and never installed. The tests with them are optional: whoever needs them says so through SPAWNSCOPE_TEST_REQUIRE.
set -euo pipefail
cd "$(dirname "$0")/.."

root=target/scanners
if [ -e "$root/complete" ]; then
    exit 0
fi
rm -rf "$root"
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT

# The two, whether or not the system has them, and what of theirs it lacks.
wanted() {
    {
        printf '%s\n' clamav-daemon fapolicyd
        apt-get --simulate install --no-install-recommends clamav-daemon fapolicyd | sed -n 's/^Inst \([^ ]*\) .*/\1/p'
    } | sort -u
}

# Lists of packages may be missing, or old.
missing=$(wanted 2>/dev/null) || { apt-get -qq update && missing=$(wanted); }
(cd "$packages" && { apt-get -qq -o APT::Sandbox::User=root download $missing ||
    { apt-get -qq update && apt-get -qq -o APT::Sandbox::User=root download $missing; }; })
mkdir -p "$root"
for package in "$packages"/*.deb; do
    dpkg -x "$package" "$root"
done
touch "$root/complete"
