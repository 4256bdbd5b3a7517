#!/usr/bin/env bash
# Builds a statically linked spawnscope with musl: target/ARCH-unknown-linux-musl/release/spawnscope. Arguments go to cargo, as in
# `static-build.sh --profile dev`.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-dependencies.sh static
target=$(uname -m)-unknown-linux-musl
rustup target add "$target"

# musl-gcc does not find the kernel headers. elfutils' configure script requires argp, fts and obstack, which musl lacks; libelf
# does not use them, so empty libraries are enough.
musl_root=$PWD/target/musl
rm -rf "$musl_root"
mkdir -p "$musl_root/include" "$musl_root/lib"
ln -s /usr/include/linux /usr/include/asm-generic "/usr/include/$(uname -m)-linux-gnu/asm" "$musl_root/include"
cat >"$musl_root/include/argp.h" <<'HEADER'
#pragma once
#include <errno.h>
#include <stdio.h>
#define ARGP_ERR_UNKNOWN E2BIG
#define ARGP_HELP_SEE 4
#define ARGP_KEY_INIT 0x1000003
#define OPTION_ARG_OPTIONAL 1
#define OPTION_HIDDEN 2
typedef int error_t;
struct argp_state { FILE *out_stream, *err_stream; const char *name; };
struct argp_option { const char *name; int key; const char *arg; int flags; const char *doc; int group; };
struct argp {
    const struct argp_option *options;
    error_t (*parser)(int, char *, struct argp_state *);
    const char *args_doc, *doc;
    const void *children;
    char *(*help_filter)(int, const char *, void *);
    const char *domain;
};
void argp_error(const struct argp_state *, const char *, ...);
void argp_help(const void *, FILE *, unsigned, char *);
HEADER
echo 'void argp_parse(void) {} void fts_close(void) {} void _obstack_free(void) {}' |
    musl-gcc -x c -c - -o "$musl_root/lib/unused.o"
for library in argp fts obstack; do
    ar rcs "$musl_root/lib/lib$library.a" "$musl_root/lib/unused.o"
done

export "CC_${target//-/_}=musl-gcc" "CFLAGS_${target//-/_}=-I$musl_root/include -L$musl_root/lib"
[ $# -gt 0 ] || set -- --release
cargo build --locked --package spawnscope --target "$target" --features vendored "$@"
