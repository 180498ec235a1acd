#!/usr/bin/env bash
# Do the models notice when the code breaks? Applies each patch in loom-tests/mutants/ to a copy of the tree, and runs the
# models that its head says must fail.
#
#     bash loom-tests/run-mutants.sh [FILTER]      FILTER: only patches with this in their name
#
# It fails if a model survives a patch that it is to kill, if a patch no longer applies or compiles, if it names a model
# that is not there, and if a model is named by no patch. Each model runs in a process of its own, because a deadlock that
# loom finds may abort it. A model that does not end counts as killed only where the patch says `Killed by: MODEL, or it
# hangs`.

source "$(dirname "${BASH_SOURCE[0]}")/../ci/lib.sh"

need_cargo
need_apt patch patch

filter=${1:-}
patches=$PWD/loom-tests/mutants
# Seconds for one model: they take less than ten, and a model that fails takes less than one that does not.
limit=120

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
mkdir "$scratch/tree"
tar -cf - --exclude=./.git --exclude='./target*' --exclude='./mutants.out*' . | tar -xf - -C "$scratch/tree"
cd "$scratch/tree"

export RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" CARGO_TARGET_DIR=$scratch/target RUST_BACKTRACE=0
# Most of the time goes into compiling, one small change after another.
export CARGO_INCREMENTAL=1 CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_OPT_LEVEL=1

models() { cargo test --quiet --release -p oneflight-loom-tests "$@" >"$log" 2>&1; }

passed=0 failed=0

# report MUTANT MODEL VERDICT [HOW]
report() {
    printf '%-42s %-76s %s\n' "$1" "$2" "$3${4:+: $4}"
    if [[ $3 == killed ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        sed 's/^/    /' "$log" | tail -n 20
    fi
}

# run_mutant PATCH MODEL HANGS: runs one model on the tree as it is now.
run_mutant() {
    local name=$1 model=$2 hangs=$3 status=0
    timeout --kill-after=5 "$limit" \
        cargo test --quiet --release -p oneflight-loom-tests --test "${model%%::*}" -- --exact "${model#*::}" \
        >"$log" 2>&1 || status=$?
    if ! grep -q '^running 1 test$' "$log"; then
        report "$name" "$model" "did not run"
    elif ((status == 0)); then
        report "$name" "$model" "SURVIVED"
    elif ((status == 124 || status == 137)); then
        if ((hangs)); then report "$name" "$model" killed "hangs"; else report "$name" "$model" "HANGS"; fi
    elif grep -q 'deadlock; threads = ' "$log"; then
        report "$name" "$model" killed "deadlock"
    elif grep -q 'panicked at' "$log"; then
        # The line after the place of the first panic says what it was.
        report "$name" "$model" killed "$(grep -A 1 -m 1 'panicked at' "$log" | tail -n 1 | cut -c 1-70)"
    else
        report "$name" "$model" "ended with status $status"
    fi
}

say "the models on the code as it is"
models || { cat "$log" && die "a model fails without any mutant"; }
mapfile -t known < <(cargo test --release -p oneflight-loom-tests -- --list 2>&1 |
    awk '/Running tests\// { sub(/.*Running tests\//, ""); sub(/\.rs .*/, ""); file = $0 }
         / target.*debug|Running unittests/ { file = "" }
         /: test$/ && file { sub(/: test$/, ""); print file "::" $0 }')
((${#known[@]} > 0)) || die "no models found"

shopt -s nullglob
declare -A unkilled=()
for model in "${known[@]}"; do unkilled[$model]=1; done

for patch in "$patches"/*"$filter"*.patch; do
    name=$(basename "$patch" .patch)
    mapfile -t killers < <(sed -n 's/^Killed by: //p' "$patch")
    : >"$log"
    if ! patch -p1 --fuzz=0 --batch --quiet --dry-run <"$patch" >"$log" 2>&1; then
        report "$name" - "no longer applies"
        continue
    fi
    if ((${#killers[@]} == 0)) && grep -q '^Explored by: ' "$patch"; then
        # For ci/explore.sh alone, but that it applies.
        continue
    fi
    if ((${#killers[@]} == 0)); then
        report "$name" - "names no model"
        continue
    fi
    patch -p1 --fuzz=0 --batch --quiet <"$patch"
    files=()
    for killer in "${killers[@]}"; do files+=(--test "${killer%%::*}"); done
    if models --no-run "${files[@]}"; then
        for killer in "${killers[@]}"; do
            model=${killer%%,*} hangs=0
            [[ $killer == *", or it hangs" ]] && hangs=1
            if [[ " ${known[*]} " != *" $model "* ]]; then
                report "$name" "$model" "no such model"
                continue
            fi
            unset "unkilled[$model]"
            run_mutant "$name" "$model" "$hangs"
        done
    else
        report "$name" - "does not compile"
    fi
    # Not a copy of the old file: its old time would hide the change from cargo.
    patch -p1 --fuzz=0 --batch --quiet --reverse <"$patch"
done

if [[ -z $filter ]]; then
    : >"$log"
    for model in "${!unkilled[@]}"; do report - "$model" "has no mutant"; done
fi
((passed + failed > 0)) || die "no patch has '$filter' in its name"

printf '\n%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
