#!/usr/bin/env bash
# Do the packages build with the oldest compilers that they promise to support (`rust-version` in their manifests)?
#
#     bash ci/msrv.sh

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

command -v rustup >/dev/null || die "needs rustup (https://rustup.rs), to choose an old Rust"

# build MANIFEST OPTIONS..: the package of that manifest, with its own oldest compiler.
build() {
    local version
    version=$(msrv "$1")
    if ! cargo "+$version" --version >/dev/null 2>&1; then
        rustup toolchain install "$version" --profile minimal || die "there is no Rust $version, and it could not be installed"
    fi
    CARGO_TARGET_DIR=$target/msrv cargo "+$version" build --locked --manifest-path "$1" --lib "${@:2}"
}

step "the library, default features" build Cargo.toml
step "the library, deadlock-detection" build Cargo.toml --features deadlock-detection
step "the library, critical-section" build Cargo.toml --no-default-features --features critical-section
step "the cache, all features" build cache/Cargo.toml --features "$cache_features"
