#!/usr/bin/env bash
# Without default features, is the library, with all that it depends on, free of `std`?
#
# A type check proves nothing: `extern crate std` compiles in a `#![no_std]` crate wherever a std is installed. So the
# library is built where none is: against a sysroot that holds `core` and `alloc` and no more, and, where rustup has or
# can get it, for a microcontroller that has no std at all.
#
#     bash ci/no_std.sh

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo
need_apt nm binutils

device=thumbv7em-none-eabi
out=$target/no_std
host=$(host)
sysroot=$out/sysroot

make_sysroot() {
    local from to=$sysroot/lib/rustlib/$host/lib crate
    from=$(rustc --print target-libdir)
    rm -rf "$sysroot"
    mkdir -p "$to"
    for crate in core alloc compiler_builtins; do
        # The library and, where it is a file of its own, its metadata.
        cp "$from"/lib"$crate"-*.r* "$to"
    done
}

# The control: with this sysroot, a crate that asks for std must not compile, and one that does not must.
sysroot_has_no_std() {
    local probe=$out/probe.rs output
    compile() { rustc --edition 2024 --crate-type rlib --sysroot "$sysroot" --out-dir "$out" "$probe" 2>&1; }

    printf '#![no_std]\nextern crate alloc;\npub fn f() -> alloc::string::String { Default::default() }\n' >"$probe"
    output=$(compile) || die "not even a crate without std compiles against the sysroot: $output"

    printf '#![no_std]\nextern crate std;\n' >"$probe"
    if output=$(compile); then
        die "the sysroot without std has a std after all"
    fi
    grep -q E0463 <<<"$output" || die "a crate that asks for std fails for another reason: $output"
}

# build TARGET
build() {
    CARGO_TARGET_DIR=$out \
        cargo build -p oneflight --lib --release --no-default-features --features critical-section --target "$1"
}

# `--target` keeps the sysroot away from build scripts, which do need std.
library_without_std() {
    local RUSTFLAGS="${RUSTFLAGS:-} --sysroot $sysroot"
    export RUSTFLAGS
    build "$host"
}

no_symbol_of_std() {
    local library=$out/$host/release/liboneflight.rlib symbols
    symbols=$(nm -C "$library" 2>/dev/null)
    grep -q oneflight <<<"$symbols" || die "found no symbol of oneflight in $library: nothing was looked at"
    if grep -E '(^|[^[:alnum:]_:])std::' <<<"$symbols"; then
        die "symbols of std in $library"
    fi
}

device_is_installed() { [[ -d $(rustc --print target-libdir --target "$device" 2>/dev/null) ]]; }

# Whether it can be installed depends on the toolchain and on the network; the sysroot above needs neither.
try_to_install_device() {
    if ! device_is_installed && command -v rustup >/dev/null && [[ ${CARGO_NET_OFFLINE:-} != true ]]; then
        timeout 120 rustup target add "$device" >/dev/null 2>&1 || true
    fi
}

step "a sysroot without std" make_sysroot
step "control: std cannot be had from it" sysroot_has_no_std
step "builds without std" library_without_std
step "no symbol of std" no_symbol_of_std
try_to_install_device
if device_is_installed; then
    step "builds for $device" build "$device"
else
    say "$device is not installed: not built for it"
fi
