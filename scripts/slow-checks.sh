#!/usr/bin/env bash
# Runs the checks of scripts/slow-checks.tsv: each of them whole (--all); those whole that the changes since a commit touch, and a sample of the
# others (--since COMMIT); or the named ones whole. Each check runs even if another one fails. Their times are printed at the end.
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

times='' failed=()
mapfile -t rows < <(grep -v '^#' "$table")
for row in "${rows[@]}"; do
    IFS=$'\t' read -r name paths whole sample <<<"$row"
    if is_whole "$name" "$paths"; then
        extent=whole command=$whole
    elif [ -n "$base" ] && [ "$sample" != - ]; then
        extent=sample command=$sample
    else
        continue
    fi
    echo "--- $name ($extent): $command"
    start=$SECONDS
    bash -c "$command" </dev/null || failed+=("$name")
    times+="$name ($extent): $((SECONDS - start)) s"$'\n'
done
printf -- '--- times of the slow checks\n%s' "$times"
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}" >&2
    exit 1
fi
