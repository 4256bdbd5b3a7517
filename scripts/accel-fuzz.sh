#!/usr/bin/env bash
# Compares how accel reads random texts with how dash and bash do: accel-fuzz.sh [TEXTS [SEED]]. 1,000,000 texts take minutes; CI runs 20,000.
set -euo pipefail
cd "$(dirname "$0")/.."
export VSPAWN_PRELOAD_TEXTS=${1:-1000000} VSPAWN_PRELOAD_SEED=${2:-$RANDOM}
export VSPAWN_PRELOAD_WHOLE_TEXTS=$((VSPAWN_PRELOAD_TEXTS / 50))
echo "$VSPAWN_PRELOAD_TEXTS texts with seed $VSPAWN_PRELOAD_SEED"
exec cargo test --locked -p vspawn-preload --test preload -- accepted random
