#!/bin/bash
# Runs a command while a real permission scanner watches the directory `scanned` in DIRECTORY.
# Usage: unshare --mount --pid --fork --kill-child --mount-proc --propagation private within.sh clamonacc|fapolicyd DAEMONS DIRECTORY COMMAND...
# All mounts are private to this mount namespace, so that the scanner affects no other process. The scanner ends with this script's pid
# namespace, and after a minute in any case.
set -eu
scanner=$1 daemons=$2 directory=$3
shift 3
scanned=$directory/scanned state=$directory/state
mkdir -p "$scanned" "$state"
mount -t tmpfs -o size=64m scanned "$scanned"
chmod 755 "$directory" "$scanned"

# Executes a daemon, with the libraries that this system lacks.
daemon() {
    LD_LIBRARY_PATH=$daemons/usr/lib/x86_64-linux-gnu exec timeout --kill-after=3 60 "$daemons/usr/sbin/$1" "${@:2}"
}

await() {
    for ((tries = 0; tries < 300; tries++)); do
        if "$@"; then return; fi
        sleep 0.1
    done
    echo "$scanner did not start:" >&2
    cat "$state"/*.log >&2
    exit 125
}

started=()
stop() {
    # The last daemon is stopped first, because other processes wait for its answers.
    for ((number = ${#started[@]} - 1; number >= 0; number--)); do
        kill "${started[number]}" 2>/dev/null || true
        wait "${started[number]}" 2>/dev/null || true
    done
}
trap stop EXIT

start_clamonacc() {
    mkdir -p "$state/signatures"
    # One signature, of "spawnscope-test", so that none has to be downloaded.
    echo 'Spawnscope.Test:0:*:737061776e73636f70652d74657374' >"$state/signatures/test.ndb"
    cat >"$state/clamd.conf" <<END
LocalSocket $state/clamd.sock
DatabaseDirectory $state/signatures
Foreground yes
User nobody
OnAccessIncludePath $scanned
OnAccessPrevention yes
OnAccessExcludeUname nobody
OnAccessMaxThreads 1
END
    chown -R nobody "$state"
    daemon clamd -c "$state/clamd.conf" >"$state/clamd.log" 2>&1 &
    started+=($!)
    await test -S "$state/clamd.sock"
    daemon clamonacc -c "$state/clamd.conf" --foreground --fdpass >"$state/clamonacc.log" 2>&1 &
    started+=($!)
    await grep -q "watching '$scanned'" "$state/clamonacc.log"
}

start_fapolicyd() {
    # The paths of its files are compiled into fapolicyd.
    cp -a /etc "$state/etc"
    mkdir -p "$state/etc/fapolicyd" "$state/var"
    cat >"$state/etc/fapolicyd/fapolicyd.conf" <<END
permissive = 1
uid = root
gid = root
do_stat_report = 0
detailed_report = 0
db_max_size = 1
watch_fs = tmpfs
trust = file
integrity = none
END
    echo "/usr/bin/true $(stat -Lc %s /usr/bin/true) $(sha256sum </usr/bin/true | cut -d' ' -f1)" >"$state/etc/fapolicyd/fapolicyd.trust"
    echo 'allow perm=any all : all' >"$state/etc/fapolicyd/compiled.rules"
    mount --bind "$state/etc" /etc
    mount --bind "$state/var" /var/lib
    mount -t tmpfs -o size=16m none /run
    mkdir -p /run/fapolicyd /var/lib/fapolicyd
    daemon fapolicyd --permissive --debug >"$state/fapolicyd.log" 2>&1 &
    started+=($!)
    await grep -q 'Starting to listen' "$state/fapolicyd.log"
}

"start_$scanner"
status=0
timeout 60 "$@" || status=$?
exit "$status"
