#!/usr/bin/env bash
# Is the read-through cache safe and live, whatever the order of events?
#
#     bash ci/explore.sh                      explores: minutes
#     bash ci/explore.sh mutants [FILTER]     does it notice when the code breaks? FILTER: only patches with this in their name
#
# Two things are explored, each in every order of its steps:
#
# - What decides for a store with leases, `Fill`, over a model of the store: a few fills, writes, lost leases and failures. It prints
#   how many states that was; then the controls: schemes that are known to be wrong, and how few steps show it.
# - The cache itself, for tasks and for threads, with its store in memory, where nothing but loaders is ever waited for: a few
#   calls, ends of loaders, polls, calls that are dropped, writes, and time. It prints how many sequences that was, and how many
#   steps. The controls are the patches in loom-tests/mutants whose head says `Explored by: TEST`: each is applied to a copy of
#   the tree, where that test must fail; the shortest sequence that shows it is printed.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo

log=$target/explore.log

explore() {
    if ! EXPLORE_FURTHER=1 cargo test --quiet --release -p oneflight-cache --lib exploration -- --nocapture >"$log" 2>&1; then
        cat "$log"
        die "an exploration failed"
    fi
    sed -n 's/.*\(explored\|control\): /\1: /p' "$log" | sort -r
    awk '/explored: memory,/ { sub(/.*: /, ""); sequences += $1; steps += $3 }
        END { printf "memory, all together: %d sequences, %d steps\n", sequences, steps }' "$log"
    grep '^test result:' "$log"
}

# explored PATCH: its tests, each of which must fail.
explored() { sed -n 's/^Explored by: //p' "$1"; }

# notices TEST: whether it fails, by a fault that it has found.
notices() {
    RUST_BACKTRACE=0 cargo test --quiet -p oneflight-cache --lib -- --exact "exploration::$1" >"$log" 2>&1 && return 1
    grep -q '^running 1 test$' "$log" && grep -A 1 -m 1 'panicked at cache/src/exploration.rs' "$log" | tail -n 1 | cut -c 1-300
}

mutants() {
    local patch name test passed=0 failed=0
    for patch in "$patches"/*"$1"*.patch; do
        name=$(basename "$patch" .patch)
        for test in $(explored "$patch"); do
            if ! patch -p1 --fuzz=0 --batch --quiet --dry-run <"$patch" >"$log" 2>&1; then
                printf '%s: no longer applies\n' "$name"
                failed=$((failed + 1))
                break
            fi
            patch -p1 --fuzz=0 --batch --quiet <"$patch"
            if notices "$test"; then
                printf '    found by %s in %s\n' "$test" "$name"
                passed=$((passed + 1))
            else
                printf '%s SURVIVED %s, or does not compile\n' "$name" "$test"
                tail -n 20 "$log"
                failed=$((failed + 1))
            fi
            # Not a copy of the old file: its old time would hide the change from cargo.
            patch -p1 --fuzz=0 --batch --quiet --reverse <"$patch"
        done
    done
    printf '%d found, %d not\n' "$passed" "$failed"
    ((passed > 0 && failed == 0))
}

mkdir -p "$target"
case ${1:-} in
'')
    step "build" cargo test --quiet --release -p oneflight-cache --lib --no-run
    step "exploration" explore
    ;;
mutants)
    need_apt patch patch
    patches=$PWD/loom-tests/mutants
    scratch=$(mktemp -d -p "$target" explore-mutants.XXXXXX)
    trap 'rm -rf "$scratch"' EXIT
    copy_tree "$scratch/tree"
    cd "$scratch/tree"
    log=$scratch/log
    export CARGO_TARGET_DIR=$scratch/target CARGO_PROFILE_DEV_DEBUG=0
    step "the code as it is" cargo test --quiet -p oneflight-cache --lib exploration::exploration
    step "mutants" mutants "${2:-}"
    ;;
*) die "usage: bash ci/explore.sh [mutants [FILTER]]" ;;
esac
