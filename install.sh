#!/bin/sh
# Installs a release of spawnscope for this machine, without root, after checking its checksum:
#   curl -fsSL https://github.com/spawnscope/spawnscope/releases/latest/download/install.sh | sh
# POSIX sh, because a fresh machine may have no other shell. Everything is in functions that the last line calls, so
# that a download that was cut off runs nothing. The GitHub action (action/install.sh) uses this script, too.
set -eu

usage() {
    cat <<'END'
Usage: install.sh [--version VERSION] [--prefix DIRECTORY]

Downloads a release of spawnscope, checks its checksum, and installs it below DIRECTORY.

  --version VERSION   the release, such as 0.2.0 (default: the newest one)
  --prefix DIRECTORY  where to install bin, lib and share (default: ~/.local)
  --help              print this text

Examples:
  curl -fsSL https://github.com/spawnscope/spawnscope/releases/latest/download/install.sh | sh
  sh install.sh --prefix /usr/local

SPAWNSCOPE_RELEASES names another server with the same files.
END
}

fail() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}

main() {
    version='' prefix=''
    while [ $# -gt 0 ]; do
        case $1 in
        --version | --prefix) [ $# -ge 2 ] || fail "$1 needs a value" ;;
        esac
        case $1 in
        --version) version=${2#v} && shift 2 ;;
        --prefix) prefix=$2 && shift 2 ;;
        --help) usage && exit ;;
        *) fail "unknown argument '$1': see install.sh --help" ;;
        esac
    done
    case $version in
    *[!0-9.]* | .* | *.) fail "the version '$version' does not look like 0.2.0" ;;
    esac
    if [ -z "$prefix" ]; then
        prefix=${HOME:?is not set: give a directory with --prefix}/.local
    fi

    arch=$(architecture)
    work=$(mktemp -d "${TMPDIR:-/tmp}/spawnscope-install.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM

    release=${SPAWNSCOPE_RELEASES:-https://github.com/spawnscope/spawnscope/releases}
    if [ -n "$version" ]; then release=$release/download/v$version; else release=$release/latest/download; fi
    download "$release/SHA256SUMS" "$work/SHA256SUMS"
    archive=$(archive_name)
    download "$release/$archive" "$work/$archive"
    check_sum
    unpack
    install_files
    report
}

# Prints the name of this machine's architecture in the names of archives.
architecture() {
    [ "$(uname -s)" = Linux ] || fail "spawnscope records on Linux only, and this is $(uname -s)"
    case $(uname -m) in
    x86_64 | amd64) echo x86_64 ;;
    aarch64 | arm64) echo aarch64 ;;
    *) fail "there is no release for $(uname -m), only for x86_64 and aarch64" ;;
    esac
}

download() { # URL FILE
    if command -v curl >/dev/null; then
        curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"
    elif command -v wget >/dev/null; then
        wget -q -O "$2" "$1"
    else
        fail "neither curl nor wget is installed"
    fi || fail "failed to download $1"
}

# Prints the name of the archive for this machine. The checksums of a release list its files, so `latest` needs no other
# request to find the version.
archive_name() {
    names=$(awk '{ print $2 }' "$work/SHA256SUMS" | grep "^spawnscope-[0-9.]*-$arch-linux\.tar\.gz\$") ||
        fail "the release at $release has no archive for $arch"
    [ "$(printf '%s\n' "$names" | wc -l)" -eq 1 ] || fail "the release at $release has several archives for $arch"
    [ -z "$version" ] || [ "$names" = "spawnscope-$version-$arch-linux.tar.gz" ] ||
        fail "the release at $release is another version: $names"
    echo "$names"
}

check_sum() {
    expected=$(awk -v name="$archive" '$2 == name { print $1 }' "$work/SHA256SUMS")
    if command -v sha256sum >/dev/null; then
        actual=$(sha256sum "$work/$archive")
    elif command -v shasum >/dev/null; then
        actual=$(shasum -a 256 "$work/$archive")
    else
        fail "neither sha256sum nor shasum is installed, so the download cannot be checked"
    fi
    [ "${actual%% *}" = "$expected" ] ||
        fail "the checksum of $archive is wrong: the download is damaged or was changed. Nothing was installed"
}

unpack() {
    mkdir "$work/files"
    # -o: the files belong to the user who installs, also if that is root.
    gzip -dc "$work/$archive" | tar -xo -f - -C "$work/files" || fail "failed to unpack $archive"
    tree=$work/files/${archive%.tar.gz}
    [ -x "$tree/bin/spawnscope" ] || fail "$archive has no bin/spawnscope"
    installed=$("$tree/bin/spawnscope" --version 2>"$work/errors") || {
        sed 's/^/  /' "$work/errors" >&2
        fail "spawnscope does not run on this machine. It needs glibc 2.31 or later (Debian 11, Ubuntu 20.04," \
            "RHEL 9); elsewhere, build it from source. Nothing was installed"
    }
}

# Installs the profiler. The archive also has the library for C, which is for the system's directories.
install_files() {
    (cd "$tree" && find bin lib/spawnscope share/man/man1 share/bash-completion share/zsh share/fish \
        share/doc/spawnscope/examples -type f) |
        while IFS= read -r file; do
            directory=$prefix/$(dirname "$file")
            mkdir -p "$directory" || fail "failed to create $directory: choose another directory with --prefix"
            # A running spawnscope keeps its old file: a rename replaces the name only.
            { cp "$tree/$file" "$prefix/$file.new" && mv -f "$prefix/$file.new" "$prefix/$file"; } ||
                fail "failed to write $prefix/$file: choose another directory with --prefix"
        done
}

report() {
    echo "installed $installed in $prefix/bin"
    case :${PATH:-}: in
    *:"$prefix/bin":*) program=spawnscope ;;
    *)
        program=$prefix/bin/spawnscope
        echo "$prefix/bin is not in PATH. To add it, put this line into the start-up file of your shell:"
        echo "  export PATH=\"$prefix/bin:\$PATH\""
        ;;
    esac
    echo "Try it on a slow script, then on your own command:"
    echo "  $program record -- bash $prefix/share/doc/spawnscope/examples/unpack.sh 40"
    echo "  $program record -- make"
    echo "With root, it records more, and costs less:"
    # By default, sudo searches the system's directories only.
    echo "  sudo $prefix/bin/spawnscope record -- make"
}

main "$@"
