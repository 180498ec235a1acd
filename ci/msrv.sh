#!/usr/bin/env bash
# Does the library build with the oldest compiler that it promises to support (`rust-version` in Cargo.toml)?
#
#     bash ci/msrv.sh

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=$(msrv)
command -v rustup >/dev/null || die "needs rustup (https://rustup.rs), to choose Rust $version"
cargo "+$version" --version >/dev/null 2>&1 || die "no Rust $version. Install it: rustup toolchain install $version --profile minimal"

build() { CARGO_TARGET_DIR=$target/msrv cargo "+$version" build --locked -p oneflight --lib "$@"; }

step "Rust $version, default features" build
step "Rust $version, deadlock-detection" build --features deadlock-detection
step "Rust $version, critical-section" build --no-default-features --features critical-section
