#!/usr/bin/env bash
# Do the tests notice when the code is changed? At least 90 % of the viable mutants, of each of two parts:
#
#     bash ci/mutants.sh sync  [OPTIONS OF CARGO MUTANTS]      the state machine, the table, what makes threads wait
#     bash ci/mutants.sh async [OPTIONS OF CARGO MUTANTS]      what makes tasks wait and drive
#
# Options are for example `--shard 0/4`, or `--re land`. JOBS in the environment is how many are tried at once, 1 if it is not set:
# those that only wait for the time limit leave the processor to others. What was caught and what was missed is left in the directory
# mutants.out of $CARGO_TARGET_DIR/mutants-PART; ci/mutants.md explains what may be missed.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

wanted=90

# suites: those that notice most in the least time come first.
case ${1:-} in
sync)
    files=(flight.rs table.rs 'table/*.rs' sync_group.rs 'sync_group/*.rs' group.rs group/{lead,many,slot,threads}.rs)
    suites=(--lib "--test=tasks --test=api" "--test=contract --test=allocations")
    ;;
async)
    files=(async_group.rs 'async_group/*.rs' group/{inside,landing,roster,tasks,visit}.rs)
    suites=("--test=tasks --test=api" "--lib --test=contract --test=allocations")
    ;;
*) die "usage: bash ci/mutants.sh sync|async [OPTIONS OF CARGO MUTANTS]" ;;
esac
out=$target/mutants-$1
shift

need_cargo
need_cargo_tool mutants cargo-mutants

# mutants SUITES [OPTIONS]: tries what no earlier suites have noticed. Only these suites are built, as most of the time goes
# into building. A mutant that makes a caller wait for ever is ended by the time limit, five times what the tests took
# without one and at least 40 s, and counts as noticed.
mutants() {
    local options status=0
    read -ra options <<<"$1"
    shift
    # Without a target directory for all: copies that are tried at once would take each other's builds.
    env -u CARGO_TARGET_DIR cargo mutants -p oneflight --output "$out" --iterate \
        "${files[@]/#/--file=src/}" "${options[@]/#/--cargo-arg=}" \
        --jobs "${JOBS:-1}" --minimum-test-timeout 40 --build-timeout 300 --no-shuffle "$@" || status=$?
    # 2: some were missed, 3: some ran into the time limit. Whether that is too many is decided below.
    ((status == 0 || status == 2 || status == 3)) || return "$status"
    cat "$out/mutants.out/caught.txt" >>"$out/caught.txt"
    cat "$out/mutants.out/timeout.txt" >>"$out/timeout.txt"
    cat "$out/mutants.out/unviable.txt" >>"$out/unviable.txt"
    # Those are noticed: the next suites are not to wait for them again.
    cat "$out/mutants.out/timeout.txt" >>"$out/mutants.out/caught.txt"
}

enough_caught() {
    local caught missed timeout viable
    caught=$(wc -l <"$out/caught.txt")
    missed=$(wc -l <"$out/mutants.out/missed.txt")
    timeout=$(wc -l <"$out/timeout.txt")
    viable=$((caught + timeout + missed))
    ((viable > 0)) || die "no viable mutant: nothing was tried"
    if ((missed > 0)); then
        printf 'missed:\n'
        sed 's/^/  /' "$out/mutants.out/missed.txt"
    fi
    printf '%d viable mutants: %d caught, %d timed out, %d missed (and %d did not compile)\n' \
        "$viable" "$caught" "$timeout" "$missed" "$(wc -l <"$out/unviable.txt")"
    printf 'noticed: %d.%d %%, wanted: %d %%\n' \
        $(((caught + timeout) * 100 / viable)) $(((caught + timeout) * 1000 / viable % 10)) "$wanted"
    (((caught + timeout) * 100 >= wanted * viable)) || die "too few mutants were noticed"
}

rm -rf "$out"
mkdir -p "$out"
for some in "${suites[@]}"; do
    step "mutants, cargo test $some" mutants "$some" "$@"
done
step "enough were noticed" enough_caught
