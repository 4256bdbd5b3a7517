#!/bin/sh
# Launches the program $1 beside two other processes: one that has stopped itself, and one that launches until SIGUSR1.
# Prints their pids (`stopped`, `busy`) first, and a line from each when it is continued or signalled.
sh -c 'kill -STOP $$; echo "stopped one continued"' &
echo "stopped=$!"
sh -c 'trap "echo busy one signalled; exit" USR1; echo ready; i=0; while [ $i -lt 2000 ]; do sleep 0.05; i=$((i+1)); done' &
echo "busy=$!"
"$1"
wait
