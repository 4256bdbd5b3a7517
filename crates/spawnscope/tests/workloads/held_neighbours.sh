#!/bin/sh
# Launches the program $1 with two neighbours: one that has stopped itself, and one that is busy launching until SIGUSR1.
# Prints their pids (stopped, busy) before, and how each of them continued.
sh -c 'kill -STOP $$; echo "stopped one continued"' &
echo "stopped=$!"
sh -c 'trap "echo busy one signalled; exit" USR1; echo ready; i=0; while [ $i -lt 2000 ]; do sleep 0.05; i=$((i+1)); done' &
echo "busy=$!"
"$1"
wait
