# Finds Debian's kernels and unpacks them into $cache/kernels. Sourced after architecture.sh.
# shellcheck shell=bash

# The suites that have the kernels of a series. Backports keep one kernel of each series between two releases, for some months.
suites_of() {
    case $1 in
        5.10) echo bullseye-security bullseye ;;
        6.1) echo bookworm-security bookworm ;;
        6.12) echo trixie-security trixie ;;
        *) echo trixie-backports sid ;;
    esac
}

# The kernels of a series, newest first: VERSION PACKAGE SUITE.
candidates() {
    local series=${1//./\\.} suite configuration names
    for suite in $(suites_of "$1"); do
        configuration=$(scripts/suite-apt.sh "$suite" "$debian") || continue
        mapfile -t names < <(APT_CONFIG=$configuration apt-cache pkgnames linux- |
            grep -E "^linux-(image|binary|binary-unsigned)-$series\..*cloud-$debian(-unsigned)?\$")
        [ ${#names[@]} -gt 0 ] || continue
        # An image has some megabytes; a package that only depends on one is small.
        APT_CONFIG=$configuration apt-cache show --no-all-versions "${names[@]}" | awk -v suite="$suite" '
            /^Package:/ { package = $2 } /^Version:/ { version = $2 }
            /^Size:/ && $2 > 1000000 { print version, package, suite }'
    done | sort -rV
}

# fetch_kernel SERIES: creates the directory $cache/kernels/ARCH/SERIES with `vmlinuz` and `version`. A list may name a package that the
# mirror no longer has; then the next older one is used.
fetch_kernel() {
    local series=$1 directory=$cache/kernels/$architecture/$1 version package suite found=''
    mkdir -p "$directory"
    while read -r version package suite; do
        found=yes
        [ "$(cat "$directory/version" 2>/dev/null)" != "$version" ] || return 0
        rm -f "$directory"/{version,*.deb}
        if (cd "$directory" && APT_CONFIG=$cache/../apt/$suite-$debian/apt.conf apt-get -qq download "$package=$version"); then
            dpkg-deb --fsys-tarfile "$directory"/*.deb | tar -xO --wildcards '*/vmlinuz*' >"$directory/vmlinuz"
            rm "$directory"/*.deb
            echo "$version" >"$directory/version"
            return 0
        fi
    done < <(candidates "$series")
    [ -n "$found" ] || echo "$series: no cloud kernel of this series for $debian in $(suites_of "$series")" >&2
    return 1
}
