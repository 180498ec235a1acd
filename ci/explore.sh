#!/usr/bin/env bash
# Is the read-through cache safe and live, whatever the order of events?
#
#     bash ci/explore.sh
#
# Explores every order of steps of a few fills, writes, lost leases and failures, and prints how many states that was. Then
# the controls: schemes that are known to be wrong, and how few steps show it.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo

log=$target/explore.log

explore() {
    if ! EXPLORE_FURTHER=1 cargo test --quiet -p oneflight-cache --lib exploration -- --nocapture >"$log" 2>&1; then
        cat "$log"
        die "an exploration failed"
    fi
    sed -n 's/.*\(explored\|control\): /\1: /p' "$log" | sort -r
    grep '^test result:' "$log"
}

mkdir -p "$target"
step "build" cargo test --quiet -p oneflight-cache --lib --no-run
step "exploration" explore
