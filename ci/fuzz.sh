#!/usr/bin/env bash
# Does a group do what a tiny reference says, whatever is done to it, step by step on one thread?
#
#     bash ci/fuzz.sh [MINUTES] [SEED]
#
# The state machine test of the soak, which an ordinary test run gives a few hundred sequences of operations, goes on with others
# for MINUTES (default 20), from SEED (default 1) on. A sequence that fails is shrunk and shown.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

minutes=${1:-20} seed=${2:-1}
[[ $minutes =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ && $# -le 2 ]] || die "usage: bash ci/fuzz.sh [MINUTES] [SEED]"

need_cargo

# With the checks that a release build leaves out.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
export ONEFLIGHT_FUZZ_SECONDS=$((minutes * 60)) ONEFLIGHT_FUZZ_SEED=$seed
step "$minutes minutes from seed $seed on" cargo test --quiet --release -p oneflight-soak --test model -- --nocapture
