#!/usr/bin/env bash
# Does the public interface of both packages break nothing that the newest release promised, unless the version says so?
#
#     bash ci/semver.sh
#
# Compares HEAD with the newest tag `v*`. Before the first release there is none; then it says so, and only shows that the
# comparison would work: HEAD differs in nothing from itself, and an item that is missing is reported, for each package.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo
need_apt git git
need_cargo_tool semver-checks cargo-semver-checks

work=$target/semver

# copy DIRECTORY COMMIT: what is committed there.
copy() {
    rm -rf "${work:?}/$1"
    mkdir -p "$work/$1"
    git archive "$2" | tar -x -C "$work/$1"
}

# compare BASELINE PACKAGE CURRENT: of the workspaces in these two directories.
compare() {
    cargo semver-checks --manifest-path "$3/Cargo.toml" --package "$2" --baseline-root "$1" --color never 2>&1
}

# reports PACKAGE FILE NAME: that the type is missing, if FILE does not re-export it any more.
reports() {
    local output
    copy without HEAD
    sed -i "s/^pub use \(.*::$3;\)$/use \1/" "$work/without/$2"
    if cmp -s "$work/head/$2" "$work/without/$2"; then
        die "found no line in $2 that re-exports $3 alone: nothing was removed"
    fi
    if output=$(compare "$work/head" "$1" "$work/without"); then
        die "nobody noticed that $1 has no $3 any more"
    fi
    if ! grep -qE "(enum|struct) [a-z_:]*::$3, previously in" <<<"$output"; then
        printf '%s\n' "$output"
        die "it fails, but not because $3 is missing"
    fi
    printf '%s without %s is reported\n' "$1" "$3"
}

newest=$(git tag --list 'v*' --sort=-version:refname | head -n 1)
copy head HEAD
if [[ -n $newest ]]; then
    copy release "$newest"
    step "oneflight since $newest" compare "$work/release" oneflight "$work/head"
    step "oneflight-cache since $newest" compare "$work/release" oneflight-cache "$work/head"
else
    say "there is no tag 'v*', so nothing was released yet, and there is nothing to compare with"
    step "control: oneflight differs in nothing from itself" compare "$work/head" oneflight "$work/head"
    step "control: oneflight-cache differs in nothing from itself" compare "$work/head" oneflight-cache "$work/head"
    step "control: a missing item of oneflight" reports oneflight src/lib.rs CallError
    step "control: a missing item of oneflight-cache" reports oneflight-cache cache/src/lib.rs Tiered
fi
