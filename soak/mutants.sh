#!/usr/bin/env bash
# Do the soak and the state machine test notice when the code breaks? Applies patches of loom-tests/mutants/ to a copy of the tree,
# one after the other, and runs both on each until they tell.
#
#     bash soak/mutants.sh SECONDS [PATCH ..]
#
# SECONDS is for the soak, of the cache for patches of the cache; the state machine test has its usual few hundred sequences. PATCH
# is a part of a name; all patches by default. Prints for each what was found after how many seconds, or that nothing was. That is
# no failure: what only loom sees, loom has to see.

source "$(dirname "${BASH_SOURCE[0]}")/../ci/lib.sh"

need_cargo
need_apt patch patch
[[ ${1:-} =~ ^[1-9][0-9]*$ ]] || die "usage: bash soak/mutants.sh SECONDS [PATCH ..]"
seconds=$1
shift
patches=$PWD/loom-tests/mutants

mkdir -p "$target"
scratch=$(mktemp -d -p "$target" soak-mutants.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
copy_tree "$scratch/tree"
export CARGO_TARGET_DIR=${MUTANTS_TARGET:-$scratch/target} RUST_BACKTRACE=0
# Most of the time goes into compiling, one small change after another.
export CARGO_INCREMENTAL=1 CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_OPT_LEVEL=2
cd "$scratch/tree"

# The soak comes with the test.
build() { cargo test --quiet --release -p oneflight-soak --no-run; }

# A call counts as lost after ten seconds: the machine is busy.
soak() {
    timeout $((seconds + 30)) "$CARGO_TARGET_DIR/release/oneflight-soak" --subject "$1" --seed 1 --stuck 10 \
        --minutes "$(awk "BEGIN { print $seconds / 60 }")"
}

model() { timeout 120 cargo test --quiet --release -p oneflight-soak --test model; }

# tell NAME WHAT COMMAND..
tell() {
    local name=$1 what=$2 status=0 start took found
    shift 2
    start=$(date +%s.%N)
    "$@" >"$log" 2>&1 || status=$?
    took=$(awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $start }")
    if ((status == 0)); then
        found="not found"
    else
        found=$(grep -m 1 -E '^BREACH|^seed [0-9]+: ' "$log" || true)
        found=${found:-status $status}
    fi
    printf '%-50s %-6s %6s s  %s\n' "$name" "$what" "$took" "${found:0:120}"
}

for patch in "$patches"/*.patch; do
    name=$(basename "$patch" .patch)
    wanted=$((! $#))
    for part in "$@"; do
        if [[ $name == *"$part"* ]]; then wanted=1; fi
    done
    if ((!wanted)); then continue; fi
    if ! patch -p1 --fuzz=0 --batch --quiet <"$patch" >"$log" 2>&1; then
        printf '%-50s does not apply\n' "$name"
        continue
    fi
    if ! build >"$log" 2>&1; then
        printf '%-50s does not compile here\n' "$name"
    elif grep -q '^+++ b/cache/' "$patch"; then
        tell "$name" cache soak cache
    else
        tell "$name" model model
        tell "$name" groups soak groups
    fi
    # Not a copy of the old file: its old time would hide the change from cargo.
    patch -p1 --fuzz=0 --batch --quiet --reverse <"$patch"
done
