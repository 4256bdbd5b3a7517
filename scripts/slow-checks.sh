#!/usr/bin/env bash
# Runs the checks of scripts/slow-checks.tsv: each of them whole (--all); those whole that the changes since a commit touch, and a sample of the
# others (--since COMMIT); or the named ones whole. Each check runs even if another one fails. Their times are printed at the end. The checks that
# need the machine to themselves come first.
set -euo pipefail
cd "$(dirname "$0")/.."

table=scripts/slow-checks.tsv
fail() {
    echo "scripts/slow-checks.sh: $*" >&2
    exit 2
}

base='' names=()
case ${1-} in
    --all) [ $# -eq 1 ] || fail "--all takes no argument" ;;
    --since)
        [ $# -eq 2 ] || fail "--since takes one commit"
        base=$(git rev-parse --verify --quiet "$2^{commit}") || fail "there is no commit $2"
        ;;
    '' | -*) fail "usage: --all | --since COMMIT | NAME..." ;;
    *) names=("$@") ;;
esac
for name in "${names[@]}"; do
    grep -v '^#' "$table" | cut -f 1 | grep -qxF -- "$name" || fail "$table has no check called $name"
done

# A path that was renamed would never be touched again.
set -o noglob
for path in $(grep -v '^#' "$table" | cut -f 2); do
    [ -n "$(git ls-files -- "$path" | head -n 1)" ] || fail "$table: no file is at $path"
done

# is_whole NAME PATHS: whether a check is run whole. A path is a pattern of git.
is_whole() {
    local patterns
    read -ra patterns <<<"$2"
    if [ ${#names[@]} -gt 0 ]; then
        [[ " ${names[*]} " == *" $1 "* ]]
    else
        [ -z "$base" ] || ! git diff --quiet "$base" HEAD -- "${patterns[@]}"
    fi
}

results=$(mktemp -d)
trap 'rm -r "$results"' EXIT

# run NAME EXTENT COMMAND: runs a check. Its time and its status are in a file of $results afterwards.
run() {
    local start=$SECONDS status=0
    bash -c "$3" </dev/null || status=$?
    printf '%s (%s): %d s\n' "$1" "$2" $((SECONDS - start)) >"$results/$1"
    [ "$status" -eq 0 ] || printf '%s\n' "$1" >>"$results/failed"
}

# run_beside NAME EXTENT COMMAND: runs a check while others run. It is printed in one piece, when it has ended.
run_beside() {
    run "$@" >"$results/$1.log" 2>&1
    printf -- '--- %s (%s): %s\n' "$@"
    cat "$results/$1.log"
}

mapfile -t rows < <(grep -v '^#' "$table")
for phase in nothing others; do
    for row in "${rows[@]}"; do
        IFS=$'\t' read -r name paths whole sample beside <<<"$row"
        [ "$beside" = "$phase" ] || continue
        if is_whole "$name" "$paths"; then
            extent=whole command=$whole
        elif [ -n "$base" ] && [ "$sample" != - ]; then
            extent=sample command=$sample
        else
            continue
        fi
        if [ "$beside" = nothing ]; then
            echo "--- $name ($extent): $command"
            run "$name" "$extent" "$command"
        else
            while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
            run_beside "$name" "$extent" "$command" &
        fi
    done
done
wait
echo '--- times of the slow checks'
find "$results" -type f ! -name '*.log' ! -name failed -exec cat {} + | sort
if [ -e "$results/failed" ]; then
    echo "failed: $(paste -sd ' ' "$results/failed")" >&2
    exit 1
fi
