#!/usr/bin/env bash
# Does the soak notice when the code breaks? Applies patches of loom-tests/mutants/ to a copy of the tree, one after the other, and
# runs the soak on each until it ends with a breach.
#
#     bash soak/mutants.sh SUBJECT SECONDS [PATCH ..]
#
# SUBJECT is `groups`, `cache` or `model` (the state machine test, as long as it takes); PATCH a part of a name, all patches by
# default. Prints a line for each: what was found after how many seconds, or that nothing was. That is no failure: what only loom
# sees, loom has to see.

source "$(dirname "${BASH_SOURCE[0]}")/../ci/lib.sh"

need_cargo
need_apt patch patch
(($# >= 2)) || die "usage: bash soak/mutants.sh groups|cache|model SECONDS [PATCH ..]"
subject=$1 seconds=$2
shift 2
patches=$PWD/loom-tests/mutants

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
mkdir "$scratch/tree"
tar -cf - --exclude=./.git --exclude='./target*' --exclude='./mutants.out*' . | tar -xf - -C "$scratch/tree"
export CARGO_TARGET_DIR=${MUTANTS_TARGET:-$scratch/target} RUST_BACKTRACE=0 CARGO_PROFILE_RELEASE_DEBUG=0
export CARGO_INCREMENTAL=1 CARGO_PROFILE_RELEASE_OPT_LEVEL=2
cd "$scratch/tree"

build() {
    if [[ $subject == model ]]; then
        cargo test --quiet --release -p oneflight-soak --test model --no-run
    else
        cargo build --quiet --release -p oneflight-soak
    fi
}

run() {
    if [[ $subject == model ]]; then
        timeout "$seconds" cargo test --quiet --release -p oneflight-soak --test model
    else
        # A call that is lost is told after ten seconds: the machine is busy.
        timeout $((seconds + 30)) "$CARGO_TARGET_DIR/release/oneflight-soak" --subject "$subject" --seed 1 --stuck 10 \
            --minutes "$(awk "BEGIN { print $seconds / 60 }")"
    fi
}

for patch in "$patches"/*.patch; do
    name=$(basename "$patch" .patch)
    if (($# > 0)); then
        wanted=0
        for part in "$@"; do
            if [[ $name == *"$part"* ]]; then wanted=1; fi
        done
        if ((!wanted)); then continue; fi
    fi
    if ! patch -p1 --fuzz=0 --batch --quiet <"$patch" >"$log" 2>&1; then
        printf '%-52s does not apply\n' "$name"
        continue
    fi
    if build >"$log" 2>&1; then
        status=0 start=$(date +%s.%N)
        run >"$log" 2>&1 || status=$?
        took=$(awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $start }")
        if ((status == 0)); then
            found="not found"
        elif grep -q -m 1 -E '^BREACH|minimal failing|^test .*FAILED|panicked at' "$log"; then
            found=$(grep -m 1 -E '^BREACH|^minimal failing|panicked at' "$log" | cut -c 1-110)
        else
            found="status $status"
        fi
        printf '%-52s %7s s  %s\n' "$name" "$took" "$found"
    else
        printf '%-52s does not compile here\n' "$name"
    fi
    patch -p1 --fuzz=0 --batch --quiet --reverse <"$patch"
done
