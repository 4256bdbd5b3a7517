#!/usr/bin/env bash
# Forks subshells that never exec. Usage: forks_without_exec.sh COUNT; prints forks.
set -u
for ((fork = 0; fork < $1; fork++)); do
    (:)
done
echo "forks=$1"
