# All differences between the architectures of guests. Sourced by other scripts; contains nothing about packages or batteries.
# shellcheck shell=bash disable=SC2034

# choose_architecture NAME: sets the variables of an architecture. NAME is as in `uname -m`.
choose_architecture() {
    architecture=$1
    case $architecture in
        x86_64)
            debian=amd64 triple=x86_64-unknown-linux-gnu console=ttyS0 runner=()
            qemu=(qemu-system-x86_64 -M q35 -cpu max)
            ;;
        aarch64)
            debian=arm64 triple=aarch64-unknown-linux-gnu console=ttyAMA0 runner=(scripts/aarch64.sh --program)
            # The standard algorithm of pointer authentication would take most of the time of an emulated program.
            qemu=(qemu-system-aarch64 -M virt -cpu "max,pauth-impdef=on")
            ;;
        *)
            echo "--arch $architecture: the matrix supports x86_64 and aarch64" >&2
            exit 2
            ;;
    esac
    cargo=(cargo) target=() built=target tools=''
    if [ "$architecture" = "$(uname -m)" ]; then
        runner=()
    else
        cargo=(scripts/$architecture.sh cargo) target=(--target "$triple") built=target/$triple tools=$architecture-linux-gnu-
    fi
}
