#!/usr/bin/env bash
# Do the suites pass every time, also when the machine is busy?
#
#     bash ci/soak.sh [ROUNDS] [FILTER]
#     bash ci/soak.sh redis [ROUNDS] [FILTER]
#     bash ci/soak.sh random [MINUTES] [SEED ..]
#
# With LOAD=0 in the environment, the suites run without the busy loops beside them.
#
# Runs the contract suite of the library ROUNDS times (default 200), for threads and for tasks on all executors, twice as many
# busy loops as cores beside it, with 1 to 16 test threads by turns. 200 rounds take hours; the filter `tasks::smol_many`, say,
# picks a part.
#
# With `redis`, the contract suite of the cache, and all suites and unit tests that start servers and processes, ROUNDS times
# (default 20), with 1 to 4 test threads by turns, and one busy loop beside them: what they measure is bounded generously, but not
# without bounds.
#
# With `random`, the random mixes of the package oneflight-soak, of the groups and of the cache, for MINUTES in all (default 60), on
# the seeds (default 1 and 2): each subject with each seed for the same time, as many at once as there are cores. See soak/README.md.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# random_mixes [MINUTES] [SEED ..]
random_mixes() {
    local minutes=${1:-60} seeds=("${@:2}")
    if ((${#seeds[@]} == 0)); then
        seeds=(1 2)
    fi
    [[ "$minutes ${seeds[*]}" =~ ^[1-9][0-9]*(\ [0-9]+)+$ ]] || die "usage: bash ci/soak.sh random [MINUTES] [SEED ..]"
    # With the checks that a release build leaves out.
    export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
    cargo build --quiet --release -p oneflight-soak
    local runs=$((2 * ${#seeds[@]})) cores
    cores=$(nproc)
    local at_once=$((cores < runs ? cores : runs))
    # They run in turns: so long that all of them together take the minutes.
    local turns=$(((runs + at_once - 1) / at_once))
    local each failed=0 of seed pid pids=()
    # The soaks themselves: `pids` are the ends of the pipelines. Ctrl-C does not reach what runs in the background.
    trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
    trap 'exit 130' INT TERM HUP
    each=$(awk "BEGIN { print $minutes / $turns }")
    for seed in "${seeds[@]}"; do
        for of in groups cache; do
            if ((${#pids[@]} == at_once)); then
                for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
                pids=()
            fi
            # `pipefail`: the status is that of the soak.
            "$target/release/oneflight-soak" --subject "$of" --seed "$seed" --minutes "$each" 2>&1 |
                sed --unbuffered "s/^/$of, seed $seed: /" &
            pids+=($!)
        done
    done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    ((!failed)) || die "the soak has found something"
}

if [[ ${1:-} == random ]]; then
    shift
    need_cargo
    step "random mixes" random_mixes "$@"
    exit
fi

subject=library rounds=200 loops=$((2 * $(nproc))) most_threads=5
if [[ ${1:-} == redis ]]; then
    subject=redis rounds=20 loops=1 most_threads=3
    shift
fi
if (($# > 0)); then
    rounds=$1
    shift
fi
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "usage: bash ci/soak.sh [redis] [ROUNDS] [FILTER], or random [MINUTES] [SEED ..]"
case ${LOAD:-1} in
0) loops=0 ;;
1) ;;
*) die "LOAD is 0 (no busy loops) or 1" ;;
esac

need_cargo
if [[ $subject == redis ]]; then
    need_redis
fi

# The suites' names.
names() {
    if [[ $subject == redis ]]; then
        printf '%s\n' lib contract conformance every_store
        local file
        for file in cache/tests/redis_*.rs; do
            basename "$file" .rs
        done
    else
        echo contract
    fi
}

# Builds them, and says where their executables are.
suites() {
    local options=(-p oneflight)
    if [[ $subject == redis ]]; then
        options=(-p oneflight-cache --features "$cache_features")
    fi
    local name
    for name in $(names); do
        if [[ $name == lib ]]; then options+=(--lib); else options+=(--test "$name"); fi
    done
    cargo test --quiet "${options[@]}" --no-run --message-format json |
        sed -n '/"kind":\["\(test\|lib\)"\]/ s/.*"executable":"\([^"]*\)".*/\1/p'
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
    for ((number = 0; number < loops; number++)); do
        while :; do :; done &
        load+=($!)
    done
}

soak() {
    local round suite log=$target/soak.log
    for ((round = 1; round <= rounds; round++)); do
        local threads=$((1 << round % most_threads))
        for suite in "${executables[@]}"; do
            local filter=("$@")
            # Of the unit tests those that start servers.
            if (($# == 0)) && [[ ${suite##*/} == oneflight_cache-* ]]; then filter=(redis::link::tests::); fi
            # A round takes a minute or two, minutes on a machine that is busy anyway; twenty mean that it hangs.
            if ! timeout 1200 "$suite" --test-threads "$threads" "${filter[@]}" >"$log" 2>&1; then
                cat "$log"
                die "round $round of $rounds failed, with $threads test threads"
            fi
        done
        # Those of Redis take minutes each.
        if [[ $subject == redis ]] || ((round % 20 == 0)); then
            printf 'round %d of %d\n' "$round" "$rounds"
        fi
    done
    grep '^test result:' "$log"
}

mapfile -t executables < <(suites)
((${#executables[@]} == $(names | wc -l))) || die "not all suites were built"
start_load
condition="beside $loops busy loops"
if ((loops == 0)); then
    condition="without load"
fi
step "$rounds rounds $condition" soak "$@"
