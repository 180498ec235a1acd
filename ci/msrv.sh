#!/usr/bin/env bash
# Do the packages compile with the oldest compilers that they promise to support (`rust-version` in their manifests)? Installs
# those that are missing.
#
#     bash ci/msrv.sh
#     bash ci/msrv.sh if-available     # leaves out, and says so, what cannot be installed here

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
    '') missing() { die "$1"; } ;;
    if-available) missing() { say "left out: $1"; } ;;
    *) die "usage: bash ci/msrv.sh [if-available]" ;;
esac

need_cargo

# install VERSION: unless it is there.
install() {
    cargo "+$1" --version >/dev/null 2>&1 || { command -v rustup >/dev/null && timeout 90 rustup toolchain install "$1" --profile minimal; }
}

# compiles MANIFEST OPTIONS..: the package of that manifest, with its own oldest compiler.
compiles() {
    local version
    version=$(msrv "$1")
    if ! install "$version"; then
        missing "there is no Rust $version here, and it cannot be installed (https://rustup.rs)"
        return
    fi
    CARGO_TARGET_DIR=$target/msrv cargo "+$version" check --quiet --locked --manifest-path "$1" --lib "${@:2}"
}

step "the library, default features" compiles Cargo.toml
step "the library, deadlock-detection" compiles Cargo.toml --features deadlock-detection
step "the library, critical-section" compiles Cargo.toml --no-default-features --features critical-section
step "the cache, all features" compiles cache/Cargo.toml --features "$cache_features"
