#!/bin/sh
# Traces other processes: strace and gdb attach to a running one, and strace traces what it starts. Prints how each ended.
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
sleep 60 &
sleeper=$!
strace -qq -o "$directory/log" -p $sleeper &
tracer=$!
# strace writes a line when it detaches, and is attached when it is the tracer.
tries=0
until grep -q "^TracerPid:.$tracer\$" /proc/$sleeper/status || [ $((tries += 1)) -gt 600 ] || ! kill -0 $tracer; do sleep 0.05; done
kill -INT $tracer
wait $tracer
echo "strace $?"
gdb -p $sleeper -batch -nx -ex detach >"$directory/gdb" 2>&1
grep -c "not permitted" "$directory/gdb"
kill $sleeper
wait $sleeper
strace -f -qq -o "$directory/log" sh -c 'sh -c "exit 3"; exit 4'
echo "strace -f $?"
