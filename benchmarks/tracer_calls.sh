#!/bin/sh
# Counts the system calls of the ptrace collector's tracing thread for each launch: strace traces that thread of the recorder, and nothing
# else, because a thread can have only one tracer, and the threads of the command already have one. Times under strace are meaningless; the counts do not depend on the machine.
#
#     benchmarks/tracer_calls.sh target/release/spawnscope [LAUNCHES [FLAG...]]
set -eu
program=$1
launches=${2:-200}
[ $# -le 2 ] && shift $# || shift 2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkfifo "$directory/begin"
"$program" record --collector ptrace -q "$@" -o "$directory/recording.db" -- \
    dash -c "read -r x <'$directory/begin'; i=0; while [ \$i -lt $launches ]; do /bin/true; i=\$((i+1)); done; exit 0" &
recorder=$!
thread=
for _ in $(seq 100); do
    for task in /proc/$recorder/task/*; do
        [ "$(cat "$task/comm" 2>/dev/null)" = tracer ] && thread=${task##*/}
    done
    [ -n "$thread" ] && break
    sleep 0.05
done
strace -c -U calls,name -S calls -o "$directory/counts" -p "$thread" 2>/dev/null &
tracer=$!
until grep -q "^TracerPid:.$tracer\$" "/proc/$recorder/task/$thread/status"; do sleep 0.05; done
echo >"$directory/begin"
wait "$recorder"
wait "$tracer" || true
awk -v launches="$launches" '$1 ~ /^[0-9]+$/ && $1 >= launches / 10 { printf "%8.2f %s\n", $1 / launches, $2 }' "$directory/counts"
