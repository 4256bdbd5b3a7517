# Builds the file system that guests boot from: Debian's programs, and on top of them spawnscope, its live tests and their compiled workloads.
# Sourced after packages.sh.
# shellcheck shell=bash

# Debian packages in the guest; their dependencies are added.
userland=(bash busybox-static coreutils dash debianutils findutils grep hostname libc-bin libelf1 libgcc-s1 libpython3-stdlib mount
    python3-minimal sed strace util-linux zlib1g)

# make_base SUITE: builds a cpio archive of Debian's programs, if the list of packages has changed.
make_base() {
    local suite=$1 directory=$cache/userland/$architecture root packages package
    local debs=$directory/packages
    scripts/suite-packages.sh --arch "$debian" "$suite" "$debs" "${userland[@]}"
    packages=$(ls "$debs")
    [ "$(cat "$directory/made-of" 2>/dev/null)" != "$packages" ] || return 0
    if [ -e "$directory/made-of" ]; then # the directory also contains the older packages
        rm -rf "$directory"
        make_base "$suite"
        return
    fi
    root=$directory/root
    rm -rf "$root"
    mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{dev,etc,mnt,proc,root,run,sys,tmp}
    # /usr is merged, as in every installed system; older packages have files in /bin.
    ln -s usr/bin usr/sbin usr/lib usr/lib64 "$root"
    for package in "$debs"/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink --exclude='./usr/share/doc*' \
            --exclude='./usr/share/man*' --exclude='./usr/share/locale*' --exclude='./usr/lib/*/gconv' --exclude='./usr/share/zoneinfo*'
    done
    echo 'root:x:0:0:root:/root:/bin/bash' >"$root/etc/passwd"
    echo 'root:x:0:' >"$root/etc/group"
    archive "$root" >"$directory/base.cpio"
    rm -rf "$root"
    echo "$packages" >"$directory/made-of"
}

# archive DIRECTORY: prints a cpio archive. It is not compressed, because an emulated CPU takes longer to decompress it than to read it.
archive() {
    (cd "$1" && find . -print0 | cpio --null --create --format=newc --owner=0:0 --quiet)
}

# The live test programs in a guest.
kinds=(live_ebpf live_ptrace)

# build_tests KIND: builds a live test program and prints its path. The flags are those of scripts/test.sh, so that nothing is built twice.
build_tests() {
    "${cargo[@]}" test --no-run --locked --workspace --features vspawn/tokio --test "$1" "${target[@]}" --message-format=json |
        sed -n "s/.*\"name\":\"$1\".*\"executable\":\"\([^\"]*\)\".*/\1/p"
}

battery() { grep -v '^#' scripts/kernel-matrix/battery; }

# check_battery DIRECTORY: checks that each name in the battery is a test of the programs in a directory, since a misspelt name would run nothing.
check_battery() {
    local directory=$1 kind unknown
    unknown=$(comm -23 <(battery | cut -f 2 | sed '/:/!s/^/live_ebpf:/' | sort -u) <(for kind in "${kinds[@]}"; do
        "${runner[@]}" "$directory/$kind" --list | sed "s/: test\$//; s/^/$kind:/"
    done | sort))
    if [ -n "$unknown" ]; then
        printf 'scripts/kernel-matrix/battery names tests that do not exist:\n%s\n' "$unknown" >&2
        exit 1
    fi
}

# Builds the tested programs and creates $cache/image-ARCH.cpio.
make_image() {
    local suite kind top
    # The guest's libc must be as new as the one that spawnscope is built with: from the same suite, or else from the newest.
    suite=$(. /etc/os-release && [ "$ID" = debian ] && echo "${VERSION_CODENAME:-sid}" || echo sid)
    make_base "$suite"
    if [ -z "$binary" ]; then
        "${cargo[@]}" build --release --locked -p spawnscope "${target[@]}"
        binary=$built/release/spawnscope
    fi
    top=$(mktemp -d)
    # This becomes the root directory, which ordinary users must be able to enter.
    chmod 755 "$top"
    # Tests look for spawnscope and for scripts at their build paths.
    mkdir -p "$top$PWD/$built/debug" "$top$PWD/crates/spawnscope/tests" "$top/usr/bin"
    "${tools}strip" -o "$top$PWD/$built/debug/spawnscope" "$binary"
    ln -s "$PWD/$built/debug/spawnscope" "$top/usr/bin/spawnscope"
    for kind in "${kinds[@]}"; do
        "${tools}strip" -o "$top/usr/bin/$kind" "$(build_tests "$kind")"
    done
    check_battery "$top/usr/bin"
    cp -r crates/spawnscope/tests/workloads "$top$PWD/crates/spawnscope/tests/workloads"
    # Compile the workloads on the host, because the guest has no compiler.
    CC=${tools}gcc SPAWNSCOPE_TEST_WORKLOADS=$top/workloads "${runner[@]}" "$top/usr/bin/live_ebpf" --list >/dev/null
    install -m 755 scripts/kernel-matrix/init "$top/init"
    battery >"$top/battery"
    archive "$top" | cat "$cache/userland/$architecture/base.cpio" - >"$cache/image-$architecture.cpio"
    rm -rf "$top"
}
