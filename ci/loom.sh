#!/usr/bin/env bash
# Do the loom models hold in every interleaving with at most that many preemptions (default 2)?
#
#     bash ci/loom.sh [PREEMPTIONS] [FILTER]
#
# 2 is for every change, 3 for the long run (ci/loom-long.sh). FILTER picks models by name, as `cargo test` does.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

preemptions=${1:-2}
[[ $preemptions =~ ^[0-9]+$ ]] || die "usage: bash ci/loom.sh [PREEMPTIONS] [FILTER]"
shift $(($# > 0 ? 1 : 0))

need_cargo

# In release, since a model runs its code some thousand times over. With more preemptions it is optimised too: then it runs for long.
((preemptions <= 2)) || loom_environment=(RUSTFLAGS="${RUSTFLAGS:-} --cfg loom")
models() {
    env "${loom_environment[@]}" CARGO_TARGET_DIR="$target/loom" LOOM_MAX_PREEMPTIONS="$preemptions" \
        cargo test --release -p oneflight-loom-tests "$@"
}

step "loom, $preemptions preemptions" models "$@"
