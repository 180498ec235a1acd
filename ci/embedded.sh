#!/usr/bin/env bash
# Does `AsyncGroup` do its job where there is no `std`: on a Cortex-M, called by tasks and in interrupts?
#
#     bash ci/embedded.sh
#
# Builds the program in embedded/ and runs it in QEMU, on a clock that follows the host's, and on clocks that count
# instructions: each of those lets the interrupts come at other places, the same ones in every run. Before that, two
# programs that must fail do so. Installs what is missing: QEMU, and the target's library from rustup or, where that
# cannot be had, a compiler with the library's source from Debian (COMPILER=debian takes those in any case).

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo
need_apt qemu-system-arm qemu-system-arm

device=thumbv7em-none-eabi
manifest=embedded/Cargo.toml
build=$target/embedded
program=$build/$device/release/oneflight-embedded
# How long a run may take that takes less than a second.
limit=60

device_is_installed() { [[ -d $(rustc --print target-libdir --target "$device" 2>/dev/null) ]]; }

try_to_install_device() {
    if ! device_is_installed && command -v rustup >/dev/null && [[ ${CARGO_NET_OFFLINE:-} != true ]]; then
        say "installing the target $device"
        timeout 120 rustup target add "$device" >/dev/null 2>&1 || true
    fi
}

# What `cargo` is given besides, and its environment.
options=(--manifest-path "$manifest" --target "$device" --release --locked)
environment=(CARGO_TARGET_DIR="$build")

# A distribution's compiler has no library for the device, but comes with its source, and `core` and `alloc` are built
# from that. RUSTC_BOOTSTRAP lets a stable cargo do so.
use_debian() {
    local compiler=/usr/bin/rustc source linkers linker
    if [[ ! -x $compiler ]]; then
        [[ ! -x /usr/bin/rustup ]] || die "$device is not installed, and 'rustup target add $device' failed."
        need_apt "$compiler" rustc-web
    fi
    source=$("$compiler" --print sysroot)/lib/rustlib/src/rust/library
    # No command comes with it, so there is none to look for.
    [[ -d $source ]] || need_apt rust-web-src rust-web-src
    [[ -d $source ]] || die "$compiler has no source of its library in $source."
    # The linker of rustup's compiler links for every target.
    linkers=("$(rustc --print sysroot)"/lib/rustlib/*/bin/rust-lld)
    linker=${linkers[0]}
    if [[ ! -x $linker ]]; then
        need_apt ld.lld lld
        linker=ld.lld
    fi
    options+=("-Zbuild-std=core,alloc")
    environment+=(RUSTC_BOOTSTRAP=1 RUSTC="$compiler" CARGO_TARGET_THUMBV7EM_NONE_EABI_LINKER="$linker")
}

lock_file() {
    cargo metadata --quiet --locked --format-version 1 --manifest-path "$manifest" >/dev/null ||
        die "embedded/Cargo.lock is out of date: cargo update --workspace --manifest-path $manifest"
}

format() {
    need_component fmt rustfmt
    cargo fmt --manifest-path "$manifest" --check
}

clippy() {
    need_component clippy clippy
    env "${environment[@]}" cargo clippy --quiet "${options[@]}" -- -D warnings
    env "${environment[@]}" cargo clippy --quiet "${options[@]}" --features fail,hang -- -D warnings
}

build() { env "${environment[@]}" cargo build "${options[@]}" "$@"; }

# The status is the program's own; that of `timeout`, which is no success either, if it does not end.
run() {
    timeout "$limit" qemu-system-arm -M mps2-an386 -nographic -semihosting-config enable=on,target=native "$@" \
        -kernel "$program" </dev/null
}

# must_fail FEATURE: the program with that feature says where it fails, and its exit status does too.
must_fail() {
    local output status=0
    build --features "$1"
    output=$(run) || status=$?
    ((status != 0)) || die "the control '$1' succeeds: a run that succeeds proves nothing"
    grep -q "^FAILED control_$1: " <<<"$output" || die "the control '$1' fails in another way (status $status): $output"
    ((status != 124)) || die "the control '$1' was ended from outside"
    printf "the control '%s' fails as it must, with status %d\n" "$1" "$status"
}

all_pass() {
    local output status=0
    output=$(run "$@") || status=$?
    printf '%s\n' "$output"
    ((status == 0)) || die "the program failed with status $status"
    # Its last line, so that a program that ends early is none that passed.
    [[ ${output##*$'\n'} =~ ^[1-9][0-9]*\ passed,\ 0\ failed$ ]] || die "the program ended before it had run everything"
}

# By the number of nanoseconds an instruction takes, as a power of two. Time that nothing happens in is skipped.
on_counted_clocks() {
    local shift output
    for shift in 0 2 4 6; do
        if ! output=$(all_pass -icount shift="$shift",sleep=off); then
            printf '%s\n' "$output"
            die "failed with $((1 << shift)) ns an instruction"
        fi
        printf 'an instruction takes %d ns: %s\n' $((1 << shift)) "${output##*$'\n'}"
    done
}

if [[ ${COMPILER:-} != debian ]]; then
    try_to_install_device
fi
if [[ ${COMPILER:-} != debian ]] && device_is_installed; then
    lint=1
else
    # It has no clippy for its library.
    lint=0
    use_debian
fi

step "the embedded lock file is up to date" lock_file
step "format" format
if ((lint)); then
    step "clippy" clippy
fi
step "control: a scenario that does not hold" must_fail fail
step "control: a task that nobody wakes" must_fail hang
step "build" build
step "run on counted clocks" on_counted_clocks
step "run" all_pass
