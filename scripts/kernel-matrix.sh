#!/usr/bin/env bash
# Boots kernels of Debian under QEMU, which emulates the machine (no KVM), records workloads with a known truth there, and prints a table
# of kernel x feature: what works, what spawnscope says it does without, and what fails. Exit status 1 when anything fails.
#
#   scripts/kernel-matrix.sh [--arch ARCH] [--short] [--write] [--binary FILE] [--jobs N] [KERNEL...]
#
# KERNEL is a series, such as 6.1: the newest kernel of it that Debian has. Without any, those below.
#   --arch     x86_64 (as this machine, without it) or aarch64
#   --short    a part of the battery, for continuous integration
#   --write    puts the table into docs/guide/kernels.md
#   --binary   a spawnscope that is built already; without it, cargo builds one
#   --jobs     guests at a time, one CPU and 1 GB each; as many as there are CPUs, without it
# Packages are kept in target/kernel-matrix, and consoles and results in target/kernel-matrix/results.
set -euo pipefail
cd "$(dirname "$0")/.."

# The long-term kernels, those of Debian's releases among them; 6.19, which took less of the verifier; and the newest.
kernels=(5.10 6.1 6.12 6.18 6.19 7.2 7.3)
cache=$PWD/target/kernel-matrix
parts=scripts/kernel-matrix

command="scripts/kernel-matrix.sh${*:+ $*}"
architecture=$(uname -m) kind=full write=() binary='' jobs=$(nproc) named=()
while [ $# -gt 0 ]; do
    case $1 in
        --arch) architecture=${2:?--arch wants an architecture} && shift ;;
        --short) kind=short ;;
        --write) write=(--write) ;;
        --binary) binary=$(realpath "${2:?--binary wants a file}") && shift ;;
        --jobs) jobs=${2:?--jobs wants a number} && shift ;;
        -h | --help) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" && exit 0 ;;
        -*) echo "$0: what is $1? Try --help" >&2 && exit 2 ;;
        *) named+=("$1") ;;
    esac
    shift
done
[ ${#named[@]} -eq 0 ] || kernels=("${named[@]}")
if [ ${#write[@]} -gt 0 ] && [ $kind = short ]; then
    echo "$0: --write wants the whole battery: leave out --short" >&2
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
    # The guest's clock counts instructions, a nanosecond each, and skips idle time: workloads take as long on every host, however busy.
    # One CPU, since such a clock has all of them share a thread of the host, and QEMU 7.2 lets the second wait until the first idles.
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
# A series that was not asked for by name may have left the mirror.
if [ ${#absent[@]} -gt 0 ]; then
    echo "not to be had: ${absent[*]}" >&2
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
