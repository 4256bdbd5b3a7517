#!/usr/bin/env bash
# Prints or checks the dependencies of programs and libraries, from ELF files given as arguments (or on standard input, one per line):
#   needs.sh check FILE...    fails on any library except the C library, and on a C library newer than the oldest supported
#   needs.sh                  prints the dependencies in RPM's format, for `cargo generate-rpm --auto-req`
# readelf reads files of every architecture; ldd and the distributions' own tools do not.
. "$(dirname "$0")/settings.sh"

C_LIBRARY='^(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|libutil\.so\.1|ld-linux-x86-64\.so\.2|ld-linux-aarch64\.so\.1)$'

libraries() {
    readelf --wide --dynamic "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'
}

# Prints the required symbol versions as lines `LIBRARY VERSION`. readelf prints
# `0x0010: Version: 1  File: libc.so.6  Cnt: 2` for a library, and then `0x0020:   Name: GLIBC_2.17  Flags: none ...` for each version.
versions() {
    readelf --wide --version-info "$1" | awk '
        /Version needs section/ { needs = 1 }
        needs && /File:/ { for (i = 1; i < NF; i++) if ($i == "File:") file = $(i + 1) }
        needs && /Name:/ { for (i = 1; i < NF; i++) if ($i == "Name:") print file, $(i + 1) }'
}

check() {
    local foreign newest
    foreign=$(libraries "$1" | grep -vE "$C_LIBRARY" || true)
    [ -z "$foreign" ] || fail "$1 needs more than the C library:" $foreign
    newest=$(versions "$1" | sed -n 's/.* GLIBC_\([0-9.]*\)$/\1/p' | sort -V | tail -1)
    [ -n "$newest" ] || fail "$1 requires no glibc version: is it dynamically linked to glibc?"
    [ "$(printf '%s\n' "$newest" "$GLIBC" | sort -V | tail -1)" = "$GLIBC" ] ||
        fail "$1 needs glibc $newest, newer than $GLIBC:" $(versions "$1" | grep "GLIBC_$newest")
    echo "$1: glibc $newest"
}

as_rpm() {
    libraries "$1" | sed 's/$/()(64bit)/'
    versions "$1" | sed 's/\(.*\) \(.*\)/\1(\2)(64bit)/'
}

if [ "${1:-}" = check ]; then
    shift
    for file in "$@"; do check "$file"; done
else
    while read -r file; do
        # cargo generate-rpm also passes man pages and headers.
        if [ "$(head -c 4 "$file" | tail -c 3)" = ELF ]; then as_rpm "$file"; fi
    done | sort -u
fi
