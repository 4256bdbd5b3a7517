#!/usr/bin/env bash
# Third step of the action: checks the budgets, annotates script lines, writes the job summary, and writes readable reports next to the
# recordings. Writes to GITHUB_OUTPUT whether all budgets are met. If one is exceeded, the last step fails the job, after
# the upload.
set -euo pipefail

directory=${INPUT_DIRECTORY:?the directory of the recordings is not set}
cd "${GITHUB_WORKSPACE:-$PWD}/${INPUT_WORKING_DIRECTORY:-.}"

shopt -s nullglob
recordings=("$directory"/run.db "$directory"/run.*.db)
# nullglob removes only patterns: run.db stays in the list even if there is no such file.
[ -e "${recordings[0]}" ] || recordings=("${recordings[@]:1}")
# Splits the input into words without expanding anything in it.
read -r -d '' -a budgets <<<"${INPUT_BUDGETS:-}" || true
baseline=()
while IFS= read -r file; do
    [ -z "$file" ] || baseline+=(--against "$file")
done <<<"${INPUT_BASELINE:-}"

spawnscope report "${recordings[0]}" --full >"$directory/report.txt"
if spawnscope html --help >/dev/null 2>&1; then
    spawnscope html "${recordings[0]}" -o "$directory/report.html"
fi
if [ "${#baseline[@]}" -gt 0 ]; then
    mapfile -t before < <(grep . <<<"${INPUT_BASELINE:-}")
    spawnscope diff --markdown "${before[@]}" -- "${recordings[@]}" >"$directory/diff.md"
    { cat "$directory/diff.md"; echo; } >>"$GITHUB_STEP_SUMMARY"
fi

status=0
spawnscope check --format github "${budgets[@]}" "${baseline[@]}" "${recordings[@]}" || status=$?
case $status in
    0) echo within-budget=true >>"$GITHUB_OUTPUT" ;;
    1) echo within-budget=false >>"$GITHUB_OUTPUT" ;;
    *) exit "$status" ;;
esac
