#!/usr/bin/env bash
# Do the models notice when the code breaks? Applies each patch in loom-tests/mutants/ to a copy of the tree, and runs the
# models that its head says must fail: as many at once as there are cores, so in no particular order.
#
#     bash loom-tests/run-mutants.sh [FILTER]      FILTER: only patches with this in their name
#
# It fails if a model survives a patch that it is to kill, if a patch no longer applies or compiles, if it names a model
# that is not there, and if a model is named by no patch. Each model runs in a process of its own, because a deadlock that
# loom finds may abort it. A model that does not end counts as killed only where the patch says `Killed by: MODEL, or it
# hangs`.
#
# First the models must hold on the code as it is. MODELS_HOLD=1 in the environment says that ci/loom.sh has just shown that.

source "$(dirname "${BASH_SOURCE[0]}")/../ci/lib.sh"

need_cargo
need_apt patch patch

filter=${1:-}
patches=$PWD/loom-tests/mutants
# Seconds for one model: they take less than ten, and a model that fails takes less than one that does not.
limit=120
# For what ends.
patience=3600

mkdir -p "$target"
scratch=$(mktemp -d -p "$target" loom-mutants.XXXXXX)
workers=() group=
# Ctrl-C does not reach what runs in the background.
end() {
    local pid
    for pid in $group "${workers[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait
    rm -rf "$scratch"
}
trap end EXIT
trap 'exit 130' INT TERM HUP

export RUST_BACKTRACE=0 "${loom_environment[@]}"

# limited SECONDS COMMAND..: in a process group of its own, all of which ends when `timeout` is told to. In the background, since a
# shell that waits for it hears that it is to end.
limited() {
    local status=0
    timeout --kill-after=5 "$@" &
    group=$!
    wait "$group" || status=$?
    group=
    return "$status"
}

# go_to WORKER: to its own copy of the tree, with builds of its own.
go_to() {
    cd "$scratch/$1/tree"
    export CARGO_TARGET_DIR=$scratch/$1/target
    log=$scratch/$1/log results=$scratch/$1/results
    : >"$log" >"$results"
}

models() { limited "$patience" cargo test --quiet --release -p oneflight-loom-tests "$@" >"$log" 2>&1; }

# report MUTANT MODEL VERDICT [HOW]: in one go, as others write too.
report() {
    local lines
    lines=$(printf '%-42s %-76s %s' "$1" "$2" "$3${4:+: $4}")
    if [[ $3 == killed ]]; then
        echo passed >>"$results"
    else
        echo failed >>"$results"
        lines+=$'\n'$(sed 's/^/    /' "$log" | tail -n 20)
    fi
    printf '%s\n' "$lines"
}

# run_mutant PATCH MODEL HANGS: runs one model on the tree as it is now.
run_mutant() {
    local name=$1 model=$2 hangs=$3 status=0
    limited "$limit" \
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

# try_patch PATCH
try_patch() {
    local patch=$1 name killers files=() killer model hangs
    name=$(basename "$patch" .patch)
    mapfile -t killers < <(sed -n 's/^Killed by: //p' "$patch")
    : >"$log"
    if ! patch -p1 --fuzz=0 --batch --quiet --dry-run <"$patch" >"$log" 2>&1; then
        report "$name" - "no longer applies"
        return
    fi
    if ((${#killers[@]} == 0)) && grep -q '^Explored by: ' "$patch"; then
        # For ci/explore.sh alone, but that it applies.
        return
    fi
    if ((${#killers[@]} == 0)); then
        report "$name" - "names no model"
        return
    fi
    patch -p1 --fuzz=0 --batch --quiet <"$patch"
    for killer in "${killers[@]}"; do files+=(--test "${killer%%::*}"); done
    if models --no-run "${files[@]}"; then
        for killer in "${killers[@]}"; do
            model=${killer%%,*} hangs=0
            [[ $killer == *", or it hangs" ]] && hangs=1
            if [[ " ${known[*]} " != *" $model "* ]]; then
                report "$name" "$model" "no such model"
                continue
            fi
            echo "tried $model" >>"$results"
            run_mutant "$name" "$model" "$hangs"
        done
    else
        report "$name" - "does not compile"
    fi
    # Not a copy of the old file: its old time would hide the change from cargo.
    patch -p1 --fuzz=0 --batch --quiet --reverse <"$patch"
}

# work WORKER: the patches that no other has taken.
work() {
    local patch
    workers=() group=
    trap 'kill $group 2>/dev/null || true; wait; exit 143' TERM HUP
    go_to "$1"
    for patch in "$patches"/*"$filter"*.patch; do
        # One of them makes the directory.
        if mkdir "$scratch/taken/$(basename "$patch" .patch)" 2>/dev/null; then
            try_patch "$patch"
        fi
    done
}

mkdir "$scratch/taken"
copy_tree "$scratch/1/tree"
if [[ -d $target/loom/release ]]; then
    mkdir "$scratch/1/target"
    cp -a --reflink=auto "$target/loom/release" "$scratch/1/target"
fi
go_to 1
holds=()
if [[ ${MODELS_HOLD:-0} == 1 ]]; then
    holds=(--no-run)
fi
say "the models on the code as it is"
models "${holds[@]}" || { cat "$log" && die "a model fails without any mutant"; }
mapfile -t known < <(cargo test --release -p oneflight-loom-tests -- --list 2>&1 |
    awk '/Running tests\// { sub(/.*Running tests\//, ""); sub(/\.rs .*/, ""); file = $0 }
         / target.*debug|Running unittests/ { file = "" }
         /: test$/ && file { sub(/: test$/, ""); print file "::" $0 }')
((${#known[@]} > 0)) || die "no models found"

shopt -s nullglob
number=$(nproc)
for ((worker = 2; worker <= number; worker++)); do
    cp -a --reflink=auto "$scratch/1" "$scratch/$worker"
done
for ((worker = 1; worker <= number; worker++)); do
    work "$worker" &
    workers+=($!)
done
whole=1
for worker in "${workers[@]}"; do wait "$worker" || whole=0; done
workers=()
((whole)) || die "not all patches were tried"

declare -A unkilled=()
for model in "${known[@]}"; do unkilled[$model]=1; done
while read -r model; do unset "unkilled[$model]"; done < <(sed -n 's/^tried //p' "$scratch"/*/results)
if [[ -z $filter ]]; then
    : >"$log"
    for model in "${!unkilled[@]}"; do report - "$model" "has no mutant"; done
fi
passed=$(cat "$scratch"/*/results | grep -cx passed || true)
failed=$(cat "$scratch"/*/results | grep -cx failed || true)
((passed + failed > 0)) || die "no patch has '$filter' in its name"

printf '\n%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
