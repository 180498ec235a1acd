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

# copy DIRECTORY: what is committed.
copy() {
    rm -rf "${work:?}/$1"
    mkdir -p "$work/$1"
    git archive HEAD | tar -x -C "$work/$1"
}

# compare BASELINE PACKAGE CURRENT: of the workspaces in these two directories.
compare() {
    cargo semver-checks --manifest-path "$3/Cargo.toml" --package "$2" --baseline-root "$1" --color never 2>&1
}

# none_missing PACKAGE
none_missing() { compare "$work/head" "$1" "$work/head"; }

# reports PACKAGE FILE NAME: that the type is missing, if FILE does not re-export it any more.
reports() {
    local output
    copy without
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

release() {
    rm -rf "$work/release"
    mkdir -p "$work/release"
    git archive "$1" | tar -x -C "$work/release"
    compare "$work/release" oneflight "$work/head"
    compare "$work/release" oneflight-cache "$work/head"
}

newest=$(git tag --list 'v*' --sort=-version:refname | head -n 1)
copy head
step "control: oneflight differs in nothing from itself" none_missing oneflight
step "control: oneflight-cache differs in nothing from itself" none_missing oneflight-cache
step "control: a missing item of oneflight" reports oneflight src/lib.rs CallError
step "control: a missing item of oneflight-cache" reports oneflight-cache cache/src/lib.rs Tiered
if [[ -n $newest ]]; then
    step "compared with $newest" release "$newest"
else
    say "there is no tag 'v*', so nothing was released yet: nothing was compared"
fi
