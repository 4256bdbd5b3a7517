#!/bin/sh
# Runs a command behind a scanner that is a product, in namespaces of its own: the daemon's package is unpacked upon an overlay of
# the root, and it watches /scanned there, a tmpfs that is also the command's TMPDIR. When this script ends, so does the pid
# namespace, and all that runs in it.
# Usage: unshare --mount --pid --fork --kill-child --mount-proc behind_daemon.sh NAME PACKAGES FOLDER PROGRAM ARGUMENTS...
set -eu
name=$1 packages=$2 folder=$3 program=$4
shift 4
mount -t tmpfs none "$folder"
cd "$folder"
mkdir upper work root
for package in "$packages"/*.deb; do dpkg -x "$package" upper; done
# In the root below, /lib is a link to /usr/lib, as packages do not know yet.
if [ -d upper/lib ]; then
    cp -a upper/lib/. upper/usr/lib/
    rm -r upper/lib
fi
mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work overlay root
for place in proc sys dev; do mount --rbind "/$place" "root/$place"; done
mount -t tmpfs none root/run
chmod 777 root/run
mkdir -p root/scanned
mount -t tmpfs none root/scanned
: >root/run/program
mount --bind "$program" root/run/program

# Waits for a line in a log, for 20 s at most.
await() {
    tries=0
    until grep -qs "$1" "$2"; do
        tries=$((tries + 1))
        if [ $tries -gt 200 ]; then
            cat "$2" >&2
            exit 1
        fi
        sleep 0.1
    done
}

case $name in
fapolicyd)
    mkdir -p root/run/fapolicyd root/var/lib/fapolicyd
    cat >root/etc/fapolicyd/fapolicyd.conf <<-'END'
	permissive = 1
	uid = root
	gid = root
	watch_fs = tmpfs
	trust = file
	integrity = none
	END
    echo 'allow perm=any all : all' >root/etc/fapolicyd/compiled.rules
    : >root/etc/fapolicyd/fapolicyd.trust
    chroot root /usr/sbin/fapolicyd --permissive --debug >log 2>&1 &
    await 'Starting to listen' log
    ;;
clamonacc)
    mkdir root/run/database
    echo '44d88612fea8a8f36de82e1278abb02f:68:Test.Signature' >root/run/database/local.hdb
    cat >root/run/clamd.conf <<-'END'
	LocalSocket /run/clamd.socket
	DatabaseDirectory /run/database
	User nobody
	Foreground yes
	OnAccessIncludePath /scanned
	OnAccessPrevention yes
	OnAccessExcludeUname nobody
	END
    chroot root /usr/sbin/clamd -c /run/clamd.conf >clamd.log 2>&1 &
    await 'Self checking' clamd.log
    chroot root /usr/sbin/clamonacc -c /run/clamd.conf --foreground --fdpass -v >log 2>&1 &
    await 'watching' log
    ;;
esac
TMPDIR=/scanned chroot root /run/program "$@"
