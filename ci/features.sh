#!/usr/bin/env bash
# Do the packages build, without a warning, with the combinations of their features: the library with every one that has a
# lock, the cache with each one, and with all? And are a build without a lock, `--cfg loom` without the feature
# `loom`, and a cluster without a runtime refused with a message that says so?
#
#     bash ci/features.sh
#     bash ci/features.sh whole     # the cache with every combination too: minutes

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
    '') depth=(--depth 1) ;;
    whole) depth=() ;;
    *) die "usage: bash ci/features.sh [whole]" ;;
esac

need_cargo
need_component clippy clippy
need_cargo_tool hack cargo-hack

# features_of MANIFEST: their names, one a line.
features_of() { sed -n '/^\[features\]/,/^\[/ s/^\([a-z0-9_-]*\) *= *\[.*/\1/p' "$1" | grep -vx default; }

# combinations PACKAGE OPTIONS..: of the features that are not excluded; those that others bring along are not added to these.
combinations() {
    local package=$1
    shift
    cargo hack clippy --quiet --feature-powerset -p "$package" --lib "$@" -- -D warnings
}

builds() { cargo clippy --quiet -p "$1" --lib --no-default-features --features "$2" -- -D warnings; }

refuses_no_lock() {
    local output
    if output=$(cargo check -p oneflight --lib --no-default-features 2>&1); then
        die "it builds without a lock"
    fi
    # shellcheck disable=SC2016 # the backquotes are the message's own
    if [[ $(grep -c '^error' <<<"$output") != 2 ]] || ! grep -q 'error: .*feature `std`.*`critical-section`' <<<"$output"; then
        printf '%s\n' "$output"
        die "it fails, but not with the one message that names the features"
    fi
}

refuses_bare_loom() {
    local output
    if output=$(RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" CARGO_TARGET_DIR=$target/loom cargo check -p oneflight --lib 2>&1); then
        die "a bare --cfg loom builds: its locks would not be loom's, and its models would prove nothing"
    fi
    # shellcheck disable=SC2016 # the backquotes are the message's own
    if ! grep -q 'error: .*feature `loom`' <<<"$output"; then
        printf '%s\n' "$output"
        die "a bare --cfg loom fails, but not with the message that names the feature"
    fi
}

# The message is the client's own.
refuses_no_runtime() {
    local output
    if output=$(cargo check -p oneflight-cache --lib --features "$1" 2>&1); then
        die "it builds without a runtime"
    fi
    if ! grep -q 'error: .*tokio-comp.*smol-comp' <<<"$output"; then
        printf '%s\n' "$output"
        die "it fails, but not with the message that names the runtimes"
    fi
}

# Those that the tests, clippy and the docs are run with, and `loom`.
lists_all() {
    diff <(features_of cache/Cargo.toml | sort) <(tr , '\n' <<<"$cache_features,loom" | sort) ||
        die "cache_features in ci/lib.sh differs from cache/Cargo.toml"
}

step "all features of the cache are in the list of the tests" lists_all
step "features" combinations oneflight --exclude-features default --at-least-one-of std,critical-section
step "no features: refused" refuses_no_lock
step "a bare --cfg loom is refused" refuses_bare_loom
# `loom` does nothing without `--cfg loom`, and a cluster needs a runtime, so these two have steps of their own.
step "features of the cache" combinations oneflight-cache --exclude-features loom,redis-cluster "${depth[@]}"
step "features of the cache: with a cluster" combinations oneflight-cache --features redis-cluster \
    --exclude-features loom --at-least-one-of redis-smol,redis-tokio "${depth[@]}"
step "features of the cache: a cluster alone is refused" refuses_no_runtime redis-cluster
step "features of the cache: loom" builds oneflight-cache loom
step "features of the cache: all" builds oneflight-cache "$cache_features"
