#!/usr/bin/env bash
# Does the contract suite pass every time, also when the machine is busy?
#
#     bash ci/soak.sh [ROUNDS] [FILTER]
#
# Runs it ROUNDS times (default 200), for threads and for tasks on all executors, twice as many busy loops as cores beside it,
# with 1 to 16 test threads by turns. 200 rounds take hours; the filter `tasks::smol_many`, say, picks a part.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

rounds=${1:-200}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "usage: bash ci/soak.sh [ROUNDS] [FILTER]"
shift $(($# > 0 ? 1 : 0))

need_cargo
need_apt cc build-essential

suite() {
    cargo test --quiet -p oneflight --test contract --no-run --message-format json |
        sed -n 's/.*"executable":"\([^"]*\/contract-[^"]*\)".*/\1/p'
}

load=()
stop_load() {
    if ((${#load[@]} > 0)); then
        kill "${load[@]}" 2>/dev/null || true
    fi
}
start_load() {
    trap stop_load EXIT
    local number
    for ((number = 0; number < 2 * $(nproc); number++)); do
        while :; do :; done &
        load+=($!)
    done
}

soak() {
    local round log=$target/soak.log
    for ((round = 1; round <= rounds; round++)); do
        # A round takes a minute or two, minutes on a machine that is busy anyway; twenty mean that it hangs.
        if ! timeout 1200 "$suite" --test-threads $((1 << round % 5)) "$@" >"$log" 2>&1; then
            cat "$log"
            die "round $round of $rounds failed, with $((1 << round % 5)) test threads"
        fi
        if ((round % 20 == 0)); then
            printf 'round %d of %d\n' "$round" "$rounds"
        fi
    done
    grep '^test result:' "$log"
}

step "build" cargo test --quiet -p oneflight --test contract --no-run
suite=$(suite)
[[ -x $suite ]] || die "found no executable of the contract suite"
start_load
step "$rounds rounds under load" soak "$@"
