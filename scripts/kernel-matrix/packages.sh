# Finds Debian's kernels and unpacks them into $cache/kernels. Sourced after architecture.sh.
# shellcheck shell=bash

# suites_with_series SERIES: prints the suites that have kernels of a series. Backports keep a kernel of each series between two Debian releases
# for some months.
suites_with_series() {
    case $1 in
        5.10) echo bullseye-security bullseye ;;
        6.1) echo bookworm-security bookworm ;;
        6.12) echo trixie-security trixie ;;
        *) echo trixie-backports sid ;;
    esac
}

# candidates SERIES: prints the kernels of a series as lines `VERSION PACKAGE SUITE`, newest first.
candidates() {
    local series=${1//./\\.} suite configuration names
    for suite in $(suites_with_series "$1"); do
        configuration=$(scripts/suite-apt.sh "$suite" "$debian") || continue
        mapfile -t names < <(APT_CONFIG=$configuration apt-cache pkgnames linux- |
            grep -E "^linux-(image|binary|binary-unsigned)-$series\..*cloud-$debian(-unsigned)?\$")
        [ ${#names[@]} -gt 0 ] || continue
        # A kernel image is some megabytes large; a package that only depends on one is small.
        APT_CONFIG=$configuration apt-cache show --no-all-versions "${names[@]}" | awk -v suite="$suite" '
            /^Package:/ { package = $2 } /^Version:/ { version = $2 }
            /^Size:/ && $2 > 1000000 { print version, package, suite }'
    done | sort -rV
}

# fetch_kernel SERIES: creates the directory $cache/kernels/ARCH/SERIES with `vmlinuz` and `version`. If the mirror no longer has a package
# that its list names, the next older one is used.
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
    [ -n "$found" ] || echo "$series: no cloud kernel of this series for $debian in $(suites_with_series "$series")" >&2
    return 1
}
