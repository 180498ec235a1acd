#!/usr/bin/env bash
# Do the tests notice when the state machine, the table or what makes threads wait is changed? At least 90 % of the viable mutants.
#
#     bash ci/mutants.sh [OPTIONS OF CARGO MUTANTS]      for example --shard 0/4, or --re land
#
# The lists of what was caught and what was missed are left in mutants.out/.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

wanted=90

need_cargo
need_apt cc build-essential
need_cargo_tool mutants cargo-mutants

# A mutant that makes a thread wait for ever is ended by the time limit, five times what the tests took without one and
# at least 40 s, and counts as noticed.
mutants() {
    local status=0
    cargo mutants -p oneflight \
        --file src/flight.rs --file src/table.rs --file src/sync_group.rs --file 'src/sync_group/*.rs' \
        --file src/group.rs --file src/group/lead.rs --file src/group/slot.rs --file src/group/threads.rs \
        --jobs 2 --minimum-test-timeout 40 --build-timeout 300 --no-shuffle "$@" -- --lib --tests || status=$?
    # 2: some were missed, 3: some ran into the time limit. Whether that is too many is decided below.
    ((status == 0 || status == 2 || status == 3)) || return "$status"
}

count() { wc -l <"mutants.out/$1.txt"; }

enough_caught() {
    local caught missed timeout unviable viable
    caught=$(count caught) missed=$(count missed) timeout=$(count timeout) unviable=$(count unviable)
    viable=$((caught + timeout + missed))
    ((viable > 0)) || die "no viable mutant: nothing was tried"
    if ((missed > 0)); then
        printf 'missed:\n'
        sed 's/^/  /' mutants.out/missed.txt
    fi
    printf '%d viable mutants: %d caught, %d timed out, %d missed (and %d did not compile)\n' \
        "$viable" "$caught" "$timeout" "$missed" "$unviable"
    printf 'noticed: %d.%d %%, wanted: %d %%\n' \
        $(((caught + timeout) * 100 / viable)) $(((caught + timeout) * 1000 / viable % 10)) "$wanted"
    (((caught + timeout) * 100 >= wanted * viable)) || die "too few mutants were noticed"
}

step "mutants" mutants "$@"
step "enough were noticed" enough_caught
