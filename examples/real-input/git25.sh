#!/bin/bash
# Calls git 25 times in the current directory, a clone that the script may change: first the queries that an editor makes for its status view, then a
# rebase of three commits. Leaves the branch as it was.
set -eu
git() { command git -c user.name=example -c user.email=example@localhost -c commit.gpgsign=false "$@" >/dev/null; }

start=$(command git rev-parse HEAD)                                       # 1
branch=$(command git symbolic-ref --short HEAD)                           # 2
for question in --show-toplevel --git-dir --show-cdup --is-bare-repository; do
    git rev-parse "$question"                                             # 3 to 6
done
git status --porcelain=v2 --branch                                        # 7
git diff --stat                                                           # 8
git diff --cached --stat                                                  # 9
git stash list                                                            # 10
git log -n 10 --oneline                                                   # 11
git for-each-ref refs/heads refs/tags                                     # 12
git describe --always                                                     # 13
git config --get-regexp '^branch'                                         # 14
git checkout -q -b spawnscope-example HEAD~3                              # 15
echo example >spawnscope-example
git add spawnscope-example                                                # 16
git commit -q -m 'an example'                                             # 17
git status --short                                                        # 18
git rebase -q "$branch"                                                   # 19
git diff --stat "$start"                                                  # 20
git log --oneline "$start.."                                              # 21
git checkout -q "$branch"                                                 # 22
git rebase -q --force-rebase HEAD~3                                       # 23
git reset -q --hard "$start"                                              # 24
git branch -q -D spawnscope-example                                       # 25
