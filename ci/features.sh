#!/usr/bin/env bash
# Do the packages build, without a warning: the library with every combination of its features that has a lock, the cache with
# each feature alone, with those together that may meet, and with all? And are a build without a lock, `--cfg loom` without the
# feature `loom`, and a cluster without a runtime refused with a message that says so?
#
#     bash ci/features.sh

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo
need_component clippy clippy

# features_of MANIFEST: their names, one a line.
features_of() { sed -n '/^\[features\]/,/^\[/ s/^\([a-z0-9_-]*\) *= *\[.*/\1/p' "$1" | grep -vx default; }

mapfile -t features < <(features_of Cargo.toml)
((${#features[@]} > 0)) || die "found no features in Cargo.toml"

# The combination whose features are the bits of $1, as cargo wants it.
combination() {
    local bits=$1 number names=()
    for number in "${!features[@]}"; do
        if ((bits >> number & 1)); then
            names+=("${features[number]}")
        fi
    done
    local IFS=,
    printf '%s' "${names[*]}"
}

builds() { cargo clippy --quiet -p "$1" --lib --no-default-features --features "$2" -- -D warnings; }

# `std` or `critical-section`, by itself or through another feature.
has_lock() {
    cargo tree -p oneflight -e features --no-default-features --features "$1" --depth 0 -f '{f}' 2>/dev/null |
        grep -qE '(^|,)(std|critical-section)(,|$)'
}

refuses_no_lock() {
    local output
    if output=$(cargo check -p oneflight --lib --no-default-features --features "$1" 2>&1); then
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
    diff <(printf '%s\n' "${features[@]}" | sort) <(tr , '\n' <<<"$cache_features,loom" | sort) ||
        die "cache_features in ci/lib.sh differs from cache/Cargo.toml"
}

for ((bits = 0; bits < 1 << ${#features[@]}; bits++)); do
    chosen=$(combination "$bits")
    if has_lock "$chosen"; then
        step "features: ${chosen:-none}" builds oneflight "$chosen"
    else
        step "features: ${chosen:-none}, refused" refuses_no_lock "$chosen"
    fi
done
step "a bare --cfg loom is refused" refuses_bare_loom

mapfile -t features < <(features_of cache/Cargo.toml)
((${#features[@]} > 0)) || die "found no features in cache/Cargo.toml"
for chosen in "" "${features[@]}" redis-smol,redis-tokio redis-cluster,redis-smol redis-cluster,redis-tokio redis,serde \
    metrics,tracing "$cache_features"; do
    if [[ $chosen == redis-cluster ]]; then
        step "features of the cache: $chosen, refused" refuses_no_runtime "$chosen"
    else
        step "features of the cache: ${chosen:-none}" builds oneflight-cache "$chosen"
    fi
done
step "all features of the cache are in the list of the tests" lists_all
