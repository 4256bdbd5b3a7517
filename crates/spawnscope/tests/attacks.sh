#!/usr/bin/env bash
# Repeats attacks of attacks.md on a built spawnscope, from outside: `attacks.sh BINARY [NAME...]`, as root. Prints a line for
# each attack, and exits with 1 if one succeeded. All files are in a temporary directory, which is removed at the end.
set -uo pipefail

binary=$(realpath "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
# Copies of bash play the roles of sudo and of a root shell that sudo has started earlier.
cp /bin/bash "$work/sudo"
cp /bin/bash "$work/shell"
nobody=65534
secret=hunter2Xq

# Creates the directories of an attack: the user's directory $user, and root's directory $root with a private file.
prepare() {
    user=$work/user root=$work/root
    rm -rf "$user" "$root"
    mkdir -m 755 "$user"
    chown "$nobody:$nobody" "$user"
    mkdir -m 700 "$root"
    (umask 077 && : >"$root/private")
    cd "$user" || exit 2
}

below() { # PARENT ARGUMENT...: runs spawnscope as a child of that copy of bash, with the variables that sudo sets
    local parent=$1
    shift
    SUDO_UID=$nobody SUDO_GID=$nobody timeout 60 "$work/$parent" -c '"$0" "$@"; exit $?' "$binary" "$@"
}

as_root() { timeout 60 "$binary" "$@"; }

fail() {
    echo "$*"
    return 1
}

assert_untouched() { # checks that root's directory is unchanged
    local found
    found=$(cd "$root" && stat -c '%n %u %a %s' ./*)
    [ "$found" = "./private 0 600 0" ] || fail "root's directory contains: $found"
}

recording_through_a_link() {
    ln -s "$root/new" spawnscope.db
    below sudo record -q -- id >/dev/null 2>&1
    assert_untouched || return
    ln -sfn "$root/private" spawnscope.db
    below sudo record -q -- id >/dev/null 2>&1
    assert_untouched
}

hold_run_as_root() {
    local ids
    ids=$(below sudo hold --run 'id -u; kill -CONT {pid}' -- id -u 2>/dev/null)
    [ "$ids" = "$nobody"$'\n'"$nobody" ] || fail "ran as: $ids"
}

unrequested_identity() {
    local id
    id=$(below shell record -- id -u 2>messages)
    { [ "$id" = 0 ] && grep -q "runs as root" messages; } || fail "ran as $id; $(head -1 messages)"
}

outputs_that_others_read() {
    umask 022
    as_root record -q -- true
    as_root export --format ndjson -o a.ndjson && as_root flame -o a.svg || return
    local modes
    modes=$(stat -c %a a.ndjson a.svg | tr '\n' ' ')
    [ "$modes" = "600 600 " ] || fail "modes: $modes"
}

outputs_through_a_link() {
    as_root record -q -- true
    ln -s "$root/private" link
    ln -s "$root/new" dangling
    for name in link dangling; do
        below sudo export --format ndjson -o $name 2>/dev/null
        below sudo flame -o $name 2>/dev/null
    done
    assert_untouched
}

few_open_files() {
    (ulimit -n 16 && as_root record -q -- true) 2>messages
    grep -q "limit on open files is 16" messages || fail "$(head -1 messages)"
}

little_memory() {
    local group=/sys/fs/cgroup/memory
    [ -d $group ] || group=/sys/fs/cgroup
    group=$group/spawnscope-attack-$$
    mkdir $group 2>/dev/null && [ -e $group/memory.max ] || [ -e $group/memory.limit_in_bytes ] || {
        rmdir $group 2>/dev/null
        echo "not tried: no control group that limits memory"
        return
    }
    for limit in memory.max memory.limit_in_bytes; do
        [ ! -e $group/$limit ] || echo 20M >$group/$limit
    done
    bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' $group "$binary" record -q -- echo ran >out 2>messages
    local status=$?
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        rmdir $group 2>/dev/null && break
        sleep 0.1
    done
    { [ $status = 125 ] && [ ! -s out ] && grep -q "recording needs" messages; } || fail "exit status $status: $(head -1 messages)"
}

change() { # SQL: changes the recording, as whoever sends one can
    python3 -c 'import sqlite3, sys; c = sqlite3.connect("spawnscope.db"); c.executescript(sys.argv[1]); c.commit()' "$1"
}

assert_refused() { # checks that reading the recording soon ends with an error
    (ulimit -v 4000000 && timeout 10 "$binary" report spawnscope.db) >/dev/null 2>messages
    local status=$?
    [ $status = 125 ] || fail "exit status $status: $(head -1 messages)"
}

endless_view() {
    as_root record -q -- true
    change "DROP TABLE missing; CREATE VIEW missing AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c)
        SELECT x AS rowid, 'a' AS what, 'b' AS effect FROM c"
    assert_refused
}

countless_cpus() {
    as_root record -q -- true
    change 'UPDATE recording SET cpus = 2147483647'
    assert_refused
}

escapes_in_messages() {
    as_root report $'x\e[31m\e]0;title\a.db' 2>messages
    ! grep -q $'\e' messages || fail "raw escapes"
}

secrets() {
    mkdir programs
    for name in docker curl git ldapsearch zip 7z htpasswd smbclient redis-cli aws vault mysql sshpass podman twine; do
        cp /bin/true "programs/$name"
    done
    cat >all.sh <<END
docker login -u me -p $secret
podman login --creds me:$secret host
twine upload -p $secret x
curl -su me:$secret http://host
curl -H 'apikey: $secret' http://host
git clone https://$secret@host/x
ldapsearch -w $secret
zip -P $secret a b
7z a -p$secret x
htpasswd -b file me $secret
smbclient -U me%$secret //host/x
redis-cli -a $secret
aws configure set aws_secret_access_key $secret
vault login $secret
env PASS=$secret true
mysql -p$secret
sshpass -p $secret true
END
    PATH=$PWD/programs:$PATH as_root record -q -- sh all.sh >/dev/null 2>&1
    # The same text as an argument of a shell.
    PATH=$PWD/programs:$PATH as_root record -q -o inner.db -- sh -c "$(cat all.sh)" >/dev/null 2>&1
    ! grep -aq $secret inner.db || fail "recorded: $(grep -ao ".\{20\}$secret" inner.db | head -1)" || return
    ! grep -aq $secret spawnscope.db || fail "recorded: $(grep -ao ".\{20\}$secret" spawnscope.db | head -1)"
}

full_disk() {
    as_root completions bash 2>messages >/dev/full
    local status=$?
    { [ $status = 125 ] && ! grep -q "panicked" messages; } || fail "exit status $status: $(head -1 messages)"
    ! as_root completions bash | grep -q lab-worker || fail "completions offer lab-worker"
}

recursion() {
    printf '#!/bin/bash\n[ "$1" -eq 0 ] || ./deep.sh $(($1 - 1))\n' >deep.sh
    chmod +x deep.sh
    as_root record -q -- ./deep.sh 60
    as_root advise spawnscope.db >messages
    ! grep -q "through deep.sh" messages || fail "$(grep "through deep.sh" messages)"
}

attacks=(recording_through_a_link hold_run_as_root unrequested_identity outputs_that_others_read outputs_through_a_link
    few_open_files little_memory endless_view countless_cpus escapes_in_messages secrets full_disk recursion)
[ $# -eq 0 ] || attacks=("$@")
succeeded=0
for attack in "${attacks[@]}"; do
    prepare
    if reason=$($attack); then
        echo "repelled   $attack${reason:+ ($reason)}"
    else
        echo "SUCCEEDED  $attack: $reason"
        succeeded=$((succeeded + 1))
    fi
    cd / || exit 2
done
[ $succeeded = 0 ]
