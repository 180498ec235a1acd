#!/usr/bin/env bash
# Does the library build, without a warning, with every combination of its features? And is `--cfg loom` without the
# feature `loom` refused with a message that says so?
#
#     bash ci/features.sh

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo
need_component clippy clippy

mapfile -t features < <(sed -n '/^\[features\]/,/^\[/ s/^\([a-z0-9_-]*\) *= *\[.*/\1/p' Cargo.toml | grep -vx default)
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

builds() { cargo clippy --quiet -p oneflight --lib --no-default-features --features "$1" -- -D warnings; }

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

for ((bits = 0; bits < 1 << ${#features[@]}; bits++)); do
    chosen=$(combination "$bits")
    step "features: ${chosen:-none}" builds "$chosen"
done
step "a bare --cfg loom is refused" refuses_bare_loom
