#!/usr/bin/env bash
# Creates a Debian root directory of another architecture in DIRECTORY from Debian's packages, without running any of its programs. It does what
# the package scripts would do, as far as in-root.sh needs it. dpkg's database in it lists the packages as installed.
#   unpacked-root.sh ARCHITECTURE SUITE DIRECTORY PACKAGE...
. "$(dirname "$0")/settings.sh"
for_architecture "$1"
suite=$2 root=$3
shift 3

debs=$ROOTS/packages-$suite
# '?essential' is apt's pattern for all essential packages.
scripts/suite-packages.sh --arch "$DEBIAN" "$suite" "$debs" '?essential' "$@"
rm -rf "$root"
mkdir -p "$root"/usr/{bin,sbin,lib,lib64,local} "$root"/{dev,proc,root,sys} "$root"/var/lib/dpkg/{info,updates}
# /usr is merged, as in every installed system; older packages have files in /bin.
ln -s usr/bin usr/sbin usr/lib usr/lib64 "$root"

for deb in "$debs"/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink
    package=$(dpkg-deb --field "$deb" Package)
    [ "$(dpkg-deb --field "$deb" Multi-Arch)" != same ] || package=$package:$DEBIAN
    { dpkg-deb --field "$deb" | sed '/^Package:/a Status: install ok installed' && echo; } >>"$root/var/lib/dpkg/status"
    dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's|^\.||; s|/$||; s|^$|/.|' >"$root/var/lib/dpkg/info/$package.list"
done
cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
ln -sf gcc "$root/usr/bin/cc"
ln -sf mawk "$root/usr/bin/awk"
cat "$root"/usr/share/ca-certificates/*/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
