#!/usr/bin/env bash
# Second step of the action: records the command several times. Recording needs root, which sudo gives; the command itself runs as the
# user of the job. Writes the directory of the recordings to GITHUB_OUTPUT.
set -euo pipefail

workspace=${GITHUB_WORKSPACE:-$PWD}
directory=$workspace/${INPUT_DIRECTORY:-spawnscope}
runs=${INPUT_RUNS:-3}

if ! [[ $runs =~ ^[1-9][0-9]*$ ]]; then
    echo "::error title=spawnscope::the input \`runs\` must be a positive number"
    exit 1
fi
if [[ $directory == *$'\n'* ]]; then
    echo "::error title=spawnscope::the input \`directory\` must not contain a line break"
    exit 1
fi
mkdir -p "$directory"
echo "directory=$directory" >>"$GITHUB_OUTPUT"

# By default, sudo replaces PATH and drops variables that the command may need.
privileged=()
if [ "$(id -u)" -ne 0 ]; then
    privileged=(sudo --non-interactive --preserve-env env "PATH=$PATH")
fi
several=()
[ "$runs" -eq 1 ] || several=(--runs "$runs")

cd "$workspace/${INPUT_WORKING_DIRECTORY:-.}"
"${privileged[@]}" "$(command -v spawnscope)" record "${several[@]}" -o "$directory/run.db" -- \
    bash -euo pipefail -c "${INPUT_RUN:?the command to record is not set}"
