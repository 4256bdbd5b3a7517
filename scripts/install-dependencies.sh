#!/usr/bin/env bash
# Installs missing build dependencies through apt-get. With a purpose as argument, also installs what that purpose needs: `tests`, `fuzz`, `dist`,
# `static` (building with musl, see scripts/static-build.sh), `aarch64` (cross-building, see scripts/aarch64.sh), `kernels [ARCH]`
# (guests of scripts/kernel-matrix.sh), `browser` (scripts/html-tests.sh), `packaging` (scripts/slow/packaging.sh), `gallery`
# (scripts/gallery.py), `comparison` (benchmarks/compare.py). If nothing is missing, it prints nothing and needs no privilege.
# It does not install Rust, because the choice of a trusted toolchain is the user's.
set -euo pipefail

purpose=${1:-build}

missing=()
need_command() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need_header() { printf '#include <%s>\n' "$1" | cc -E - >/dev/null 2>&1 || missing+=("$2"); }
need_file() { [ -e "$1" ] || missing+=("$2"); }
need_static_libc() { echo 'int main(void){return 0;}' | cc -static -x c - -o /dev/null 2>/dev/null || missing+=("$1"); }

need_command cc gcc
need_command clang clang
need_command make make
need_command pkg-config pkg-config
need_header stdio.h libc6-dev
need_header gelf.h libelf-dev
need_header zlib.h zlib1g-dev
if [ "$purpose" = tests ]; then
    need_static_libc libc6-dev
    need_command bash bash
    need_command python3 python3
    need_command setpriv util-linux
    need_command unshare util-linux
    need_command strace strace
    need_command gdb gdb
    need_command c++ g++
    need_command valgrind valgrind
    need_command groff groff
    need_command musl-gcc musl-tools
    need_command go golang-go
    # Programs that recipes and the pairs of tests/fixes launch.
    need_command perl perl
    need_command zsh zsh
    need_command fish fish
    need_command git git
    need_command bc bc
    need_command jq jq
    need_command node nodejs
    need_command npm npm
    need_command ninja ninja-build
fi
if [ "$purpose" = fuzz ]; then
    need_command c++ g++
fi
if [ "$purpose" = dist ]; then
    # libelf is built from source.
    need_command autoreconf autoconf
    need_command aclocal automake
    need_command autopoint autopoint
    need_command flex flex
    need_command bison bison
    need_command gawk gawk
    need_command readelf binutils
    need_command debootstrap debootstrap
    need_command npm npm
fi
if [ "$purpose" = tests ] || [ "$purpose" = dist ]; then
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
fi
if [ "$purpose" = aarch64 ]; then
    need_command aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    need_file /usr/aarch64-linux-gnu/include/stdio.h libc6-dev-arm64-cross
    need_command qemu-aarch64-static qemu-user-static
fi
if [ "$purpose" = kernels ]; then
    case ${2:-$(uname -m)} in
        aarch64) need_command qemu-system-aarch64 qemu-system-arm ;;
        *) need_command qemu-system-x86_64 qemu-system-x86 ;;
    esac
    need_command cpio cpio
    need_command python3 python3
fi

if [ "$purpose" = browser ]; then
    need_command chromium chromium
    need_command node nodejs
    need_command npm npm
    need_command python3 python3
    # Without a font, Chromium draws no text.
    need_file /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf fonts-dejavu-core
fi
if [ "$purpose" = packaging ]; then
    need_command makepkg makepkg
    need_command fakeroot fakeroot
    need_command bsdtar libarchive-tools
    need_command setpriv util-linux
    need_command ruby ruby
    need_command nix-instantiate nix-bin
    need_command npm npm
    need_command python3 python3
fi
if [ "$purpose" = gallery ]; then
    need_command emacs emacs-nox
    need_file /usr/share/doc/elpa-magit elpa-magit
    need_file /usr/share/bash-completion/bash_completion bash-completion
    need_file /usr/bin/pip python3-pip
    need_command git git
    need_command go golang-go
    need_command lesspipe less
    need_command npm npm
    need_command vim vim
fi
if [ "$purpose" = comparison ]; then
    need_command strace strace
    need_command perf linux-perf
    need_file /usr/sbin/execsnoop libbpf-tools
    need_command zstd zstd
    # tracexec is linked with libseccomp.
    need_header seccomp.h libseccomp-dev
fi
if [ "$purpose" = static ]; then
    need_command musl-gcc musl-tools
    # elfutils, which contains libelf, is built from source.
    need_command autoreconf autoconf
    need_command automake automake
    need_command autopoint autopoint
    need_command msgfmt gettext
    need_command gawk gawk
    need_command flex flex
    need_command bison bison
fi

if ! command -v cargo >/dev/null 2>&1; then
    echo "cargo is missing: install Rust from https://rustup.rs and try again" >&2
    exit 1
fi
if [ "$purpose" = aarch64 ] && ! [ -d "$(rustc --print sysroot)/lib/rustlib/aarch64-unknown-linux-gnu" ]; then
    rustup target add aarch64-unknown-linux-gnu
fi
[ ${#missing[@]} -gt 0 ] || exit 0

mapfile -t packages < <(printf '%s\n' "${missing[@]}" | sort -u)
if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing: ${packages[*]} (Debian's names); apt-get is not available: install them with your package manager" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "missing: ${packages[*]}; neither root nor sudo is available: ask an administrator to run: apt-get install ${packages[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "installing ${packages[*]}" >&2
# Checks that run at the same time wait for each other: apt-get would fail.
exec 9<"$0"
flock 9
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >&2
