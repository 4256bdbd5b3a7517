#!/usr/bin/env bash
# Checks that HEAD can be released, builds and tests its packages, and prints the commands that publish it. It does not run these commands.
# Usage: scripts/release.sh COMMIT, where COMMIT is the one for which .ci/run passed. It must be HEAD.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "not ready for release: $*" >&2
    exit 1
}

# Fails unless a file contains a text.
require_text() { grep -qF -- "$2" "$1" || fail "$1 does not contain '$2'"; }

is_clean() { [ -z "$(git status --porcelain)" ]; }

[ $# -eq 1 ] || fail "usage: scripts/release.sh COMMIT, the one for which .ci/run passed"
head=$(git rev-parse HEAD)
passed=$(git rev-parse --verify --quiet "$1^{commit}") || fail "$1 is not a commit"
[ "$passed" = "$head" ] || fail ".ci/run passed for $passed, but HEAD is $head"
is_clean || fail "there are uncommitted changes: git status"

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
tag=v$version
! git rev-parse --verify --quiet "refs/tags/$tag" >/dev/null || fail "the tag $tag exists; raise the version"
while read -r dependency; do
    [[ $dependency == *"version = \"$version\""* ]] || fail "Cargo.toml: version is not $version: $dependency"
done < <(grep -E '^[a-z-]+ = \{ path = "crates/' Cargo.toml)
# The first section of the changelog must be that of this version, with its date.
newest=$(grep -m1 '^## ' CHANGELOG.md)
[[ $newest =~ ^"## $version ("[0-9]{4}-[0-9]{2}-[0-9]{2}")"$ ]] || fail "CHANGELOG.md begins with '$newest', not with '## $version (DATE)'"
require_text docs/man/spawnscope.1 "\"spawnscope $version\""
require_text docs/man/vspawn.3 "\"vspawn $version\""
require_text docs/guide/getting-started.md "spawnscope-$version-"

make man
is_clean || fail "\`make man\` changed files: commit them, and run .ci/run again"

architectures=${ARCHITECTURES:-x86_64 aarch64}
make dist test-dist ARCHITECTURES="$architectures"
is_clean || fail "building the packages changed files: git status"

cat <<COMMANDS
$tag is ready, for $architectures. To publish it:

  git tag -s $tag -m "Spawnscope $version" $head
  git push origin $tag
  cargo publish --workspace --locked
  gh release create $tag --title "Spawnscope $version" --notes-file <(sed '1,/^## $version /d; /^## /,\$d' CHANGELOG.md) target/dist/*
COMMANDS
