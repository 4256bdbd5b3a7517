#!/usr/bin/env bash
# A job of continuous integration as many projects have it: gets a repository, checks each file, and packages what it got.
# Nothing in it is slow on purpose. Usage: ci-job.sh REPOSITORY
set -euo pipefail

git clone --quiet --depth 1 "file://$(realpath "$1")" checkout
cd checkout

for file in $(git ls-files '*.sh'); do
    bash -n "$file"
    head -n 1 "$file" | grep -q '^#!' || echo "$file: no interpreter"
done
for file in $(git ls-files '*.py'); do
    python3 -m py_compile "$file"
done
for file in $(git ls-files '*.md'); do
    name=$(basename "$file" .md)
    lines=$(wc -l <"$file")
    echo "$name: $lines lines"
done

version=$(git describe --always)
mkdir -p "package-$version"
for file in $(git ls-files docs); do
    mkdir -p "package-$version/$(dirname "$file")"
    cp "$file" "package-$version/$file"
done
tar -czf "package-$version.tar.gz" "package-$version"
sha256sum "package-$version.tar.gz"
