#!/usr/bin/env bash
# Is this change good? Runs everything that decides it, and installs what is missing for that (a C compiler, which the
# bundled SQLite of the demo needs; git; jq; cargo-hack; the oldest compilers, if rustup can get them; an emulator for the
# microcontroller; a Redis server, of which the tests start their own; Rust itself must be there).
#
#     bash ci/test.sh
#
# The first run fetches the dependencies; after that it works without a network (CARGO_NET_OFFLINE=true). Every step
# runs, also after one has failed. What each of them printed is in target/ci/. The last line says how many tests ran.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo
need_component fmt rustfmt
need_component clippy clippy
need_apt git git
need_redis

# Most tests that take long wait for something: more of them at once than there are cores.
cores=$(nproc)
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((cores > 2 ? 2 * cores : 4))}

logs=$target/ci
rm -rf "$logs"
mkdir -p "$logs"
failed=()

# run NAME COMMAND..: a step that the others do not depend on.
run() {
    local name=$1
    shift
    if ! (step "$@") </dev/null 2>&1 | tee "$logs/$name.log"; then
        failed+=("$name")
    fi
}

run check "tidy" bash ci/check.sh
# Without the models: there is nothing of them in an ordinary build. Nor with the table of behaviour, which turns on the detection
# of deadlocks for all that is built with it.
run tests "tests" cargo test --no-fail-fast --workspace --exclude oneflight-loom-tests --exclude oneflight-cache \
    --exclude oneflight-behaviour
# Without the checks of a debug build, as users build it, but optimised no more than that needs. Only what is polled by hand: there
# wakers panic (F3). The contract suite would take minutes to be compiled again.
run tests-release "tests, release" env CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=0 \
    cargo test --no-fail-fast --release -p oneflight --test tasks
# Without what must not compile, which the step before the last has shown: the feature adds nothing that has a parameter.
run tests-deadlock-detection "tests, deadlock-detection" cargo test --no-fail-fast -p oneflight --features deadlock-detection -- \
    --skip what_must_not_be_shared
run tests-cache "tests, cache with all features" cargo test --no-fail-fast -p oneflight-cache --features "$cache_features"
run features "features" bash ci/features.sh
run no_std "no_std" bash ci/no_std.sh
run msrv "oldest compilers" bash ci/msrv.sh if-available
run tests-loom "loom" bash ci/loom.sh
run embedded "embedded" bash ci/embedded.sh
# Counted apart: its tests are meant to fail. The models that the step above has run need not run again.
holds=1
[[ " ${failed[*]} " != *" tests-loom "* ]] || holds=0
run mutants "loom mutants" env MODELS_HOLD=$holds bash loom-tests/run-mutants.sh

# The sums over the lines `test result: ok. 12 passed; 0 failed; ..`.
read -r passes failures < <(cat "$logs"/tests*.log | sed 's/\x1b\[[0-9;]*m//g' |
    awk '/^test result:/ { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) p += $(i-1); if ($i ~ /^failed/) f += $(i-1) } }
        END { print p + 0, f + 0 }')

printf '\n== all of it (%d s)\n' "$SECONDS"
if ((${#failed[@]} > 0)); then
    printf 'steps that failed: %s\n' "${failed[*]}"
elif ((passes == 0)); then
    printf 'no test ran\n'
fi
printf '%d passed, %d failed\n' "$passes" "$failures"
((${#failed[@]} == 0 && failures == 0 && passes > 0))
