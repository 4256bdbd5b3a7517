#!/usr/bin/env bash
# Boots Debian's kernels under QEMU, which emulates the machine (no KVM), runs some of the live tests on them, and prints a table
# of kernel x feature: what works, what spawnscope reports as missing, and what fails. Exits with status 1 if anything fails.
#
#   scripts/kernel-matrix.sh [--arch ARCH] [--short] [--write] [--binary FILE] [--jobs N] [KERNEL...]
#
# KERNEL is a series, such as 6.1, and selects Debian's newest kernel of that series. The default is the list below.
#   --arch     x86_64 or aarch64 (default: this machine's architecture)
#   --short    runs only the short tests of the battery, for continuous integration
#   --write    puts the table into docs/guide/kernels.md
#   --binary   a spawnscope that is already built (default: cargo builds one)
#   --jobs     guests at a time, with one CPU and 1 GB each (default: the number of CPUs)
# Packages are kept in target/kernel-matrix, and consoles and results in target/kernel-matrix/results.
set -euo pipefail
cd "$(dirname "$0")/.."

# The long-term kernels, including those of Debian's releases; 6.19, whose verifier is stricter; and the newest.
kernels=(5.10 6.1 6.12 6.18 6.19 7.2 7.3)
cache=$PWD/target/kernel-matrix
parts=scripts/kernel-matrix

command="scripts/kernel-matrix.sh${*:+ $*}"
architecture=$(uname -m) kind=full write=() binary='' jobs=$(nproc) named=()
while [ $# -gt 0 ]; do
    case $1 in
        --arch) architecture=${2:?--arch needs an architecture} && shift ;;
        --short) kind=short ;;
        --write) write=(--write) ;;
        --binary) binary=$(realpath "${2:?--binary needs a file}") && shift ;;
        --jobs) jobs=${2:?--jobs needs a number} && shift ;;
        -h | --help) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" && exit 0 ;;
        -*) echo "$0: unknown option $1; see --help" >&2 && exit 2 ;;
        *) named+=("$1") ;;
    esac
    shift
done
[ ${#named[@]} -eq 0 ] || kernels=("${named[@]}")
if [ ${#write[@]} -gt 0 ] && [ $kind = short ]; then
    echo "$0: --write requires the whole battery: remove --short" >&2
    exit 2
fi

# shellcheck source=scripts/kernel-matrix/architecture.sh
. $parts/architecture.sh
# shellcheck source=scripts/kernel-matrix/packages.sh
. $parts/packages.sh
# shellcheck source=scripts/kernel-matrix/image.sh
. $parts/image.sh

boot() {
    local series=$1
    local kernel=$cache/kernels/$architecture/$series
    # The guest's clock counts instructions, one nanosecond each, and skips idle time, so workloads take the same time on every host.
    # The guest has one CPU, because with such a clock all CPUs share a thread of the host, and QEMU 7.2 runs the second only while the first idles.
    python3 $parts/guest.py --series "$series" --package "$(cat "$kernel/version")" --battery $kind --into "$results/$series" -- \
        "${qemu[@]}" -accel tcg -icount shift=0,sleep=off -smp 1 -m 1024 -nodefaults -no-user-config -display none -serial stdio -no-reboot \
        -kernel "$kernel/vmlinuz" -initrd "$cache/image-$architecture.cpio" \
        -append "console=$console quiet loglevel=3 panic=-1 oops=panic battery=$kind"
}

choose_architecture "$architecture"
results=$cache/results/$architecture
scripts/install-dependencies.sh kernels "$architecture"
[ ${#target[@]} -eq 0 ] || scripts/install-dependencies.sh "$architecture"
mkdir -p "$results"
absent=()
for series in "${kernels[@]}"; do
    fetch_kernel "$series" || absent+=("$series")
done
# A series of the default list may be missing, because the mirror may no longer have it; a series given as argument may not.
if [ ${#absent[@]} -gt 0 ]; then
    echo "not available: ${absent[*]}" >&2
    [ ${#named[@]} -eq 0 ] && [ ${#absent[@]} -lt ${#kernels[@]} ] || exit 1
    mapfile -t kernels < <(printf '%s\n' "${kernels[@]}" | grep -vxF "$(printf '%s\n' "${absent[@]}")")
fi
make_image

trap 'kill $(jobs -p) 2>/dev/null' EXIT
for series in "${kernels[@]}"; do
    rm -rf "${results:?}/$series"
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    boot "$series" &
done
wait
trap - EXIT
python3 $parts/table.py "${write[@]}" --battery $parts/battery --arch "$architecture" --command "$command" "${kernels[@]/#/$results/}"
