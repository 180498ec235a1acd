#!/usr/bin/env bash
# Does ThreadSanitizer stay silent over the contract suite, for threads and for tasks?
#
#     bash ci/tsan.sh [FILTER]
#
# Needs the nightly toolchain, which has the sanitizer, and its component rust-src: std is built with the sanitizer too,
# or every `LazyLock`, channel and scoped thread in it would be reported, since their synchronisation could not be seen.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo
command -v rustup >/dev/null || die "ThreadSanitizer needs a nightly compiler, and there is no rustup to choose one with (https://rustup.rs)."
cargo +nightly --version >/dev/null 2>&1 || die "no nightly toolchain. Install it: rustup toolchain install nightly --profile minimal --component rust-src"
if [[ ! -d $(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library ]]; then
    rustup component add rust-src --toolchain nightly || die "the nightly toolchain has no rust-src, and it could not be installed."
fi

# `--target` keeps the sanitizer away from build scripts.
suites() {
    local log=$target/tsan/suites.log
    mkdir -p "$target/tsan"
    RUSTFLAGS="${RUSTFLAGS:-} -Zsanitizer=thread" CARGO_TARGET_DIR=$target/tsan \
        cargo +nightly test -Zbuild-std -p oneflight --test contract --test tasks --target "$(host)" -- "$@" 2>&1 | tee "$log"
    # A report makes the process fail at its end; a child process's may be lost.
    if grep -q 'WARNING: ThreadSanitizer' "$log"; then
        die "ThreadSanitizer has something to say, see above"
    fi
}

step "ThreadSanitizer" suites "$@"
