# Sourced by every script in this directory: strict mode, the repository root, and the few things they all need.
# shellcheck shell=bash

set -euo pipefail
cd -P "$(dirname "${BASH_SOURCE[0]}")/.."

# Where builds go. Those that need flags of their own get a directory of their own under it, or each would throw the
# other's work away.
# shellcheck disable=SC2034 # for the scripts that source this
target=${CARGO_TARGET_DIR:-target}
mkdir -p -- "$target"
target=$(cd -P -- "$target" && pwd)

# All features of the cache but `loom`, which belongs to a build of its own.
# shellcheck disable=SC2034
cache_features=metrics,redis,redis-cluster,redis-smol,redis-tokio,serde,test-util,tracing

# What the models are compiled with, for 2 preemptions: most of the time goes into compiling, and for mutants one small change after
# another. A loom build shares nothing with an ordinary one.
# shellcheck disable=SC2034
loom_environment=(RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" CARGO_INCREMENTAL=1 CARGO_PROFILE_RELEASE_DEBUG=0
    CARGO_PROFILE_RELEASE_OPT_LEVEL=1)

say() { printf '%s\n' "$*" >&2; }

die() {
    say "error: $*"
    exit 1
}

# step NAME COMMAND..: runs the command under a heading and says how long it took. Ends the script if it fails.
step() {
    local name=$1 start=$SECONDS status
    shift
    printf '\n== %s\n' "$name"
    # Not `"$@" || ..`: that would switch `set -e` off inside a function, and only its last line would count.
    set +e
    (
        set -e
        "$@"
    )
    status=$?
    set -e
    if ((status == 0)); then
        printf '== %s (%d s)\n' "$name" $((SECONDS - start))
    else
        printf '== %s FAILED (%d s)\n' "$name" $((SECONDS - start))
        exit "$status"
    fi
}

# The oldest Rust for the library, or for the package whose manifest is $1.
msrv() { sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "${1:-Cargo.toml}" | head -n 1; }

# The oldest Rust for all packages of the workspace: some crates that ours are compared with ask for a newer one than ours do.
workspace_msrv() {
    local manifest
    for manifest in Cargo.toml */Cargo.toml */*/Cargo.toml; do
        msrv "$manifest"
    done | sort -V | tail -n 1
}

# Ends the script unless there is a cargo that can build this workspace; a linker for it is installed.
need_cargo() {
    local wanted have
    wanted=$(workspace_msrv)
    if ! command -v cargo >/dev/null && [[ -x ${CARGO_HOME:-${HOME:-}/.cargo}/bin/cargo ]]; then
        PATH=${CARGO_HOME:-${HOME:-}/.cargo}/bin:$PATH
    fi
    if ! command -v cargo >/dev/null; then
        die "no cargo. Install Rust $wanted or newer: with rustup (https://rustup.rs), or from your distribution if its packages are that new."
    fi
    have=$(rustc --version | cut -d ' ' -f 2)
    if [[ $(printf '%s\n' "$wanted" "$have" | sort -V | head -n 1) != "$wanted" ]]; then
        die "rustc $have is too old: this workspace needs Rust $wanted or newer, for example by 'rustup update stable'."
    fi
    need_apt cc build-essential
}

# need_component COMMAND COMPONENT: a part of the toolchain that a minimal installation lacks.
need_component() {
    if cargo "$1" --version >/dev/null 2>&1; then
        return
    fi
    if command -v rustup >/dev/null; then
        rustup component add "$2" || die "'rustup component add $2' failed."
    else
        die "no 'cargo $1'. Install your distribution's package for it (on Debian and Ubuntu rustfmt, rust-clippy), or use rustup."
    fi
}

# need_apt COMMAND PACKAGE: installs the Debian or Ubuntu package unless the command is there.
need_apt() {
    if command -v "$1" >/dev/null; then
        return
    fi
    command -v apt-get >/dev/null || die "no '$1'. Install it; on Debian and Ubuntu it is in the package $2."
    local as_root=()
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null || die "no '$1'. As root: apt-get install $2"
        as_root=(sudo)
    fi
    say "installing $2, for '$1'"
    "${as_root[@]}" apt-get update -qq >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >&2
}

# A server for the tests, which start their own of it: that of the package, if it comes with one that runs, is left alone. The
# environment variable REDIS_SERVER names another program, Valkey's say.
need_redis() {
    if [[ -n ${REDIS_SERVER:-} ]]; then
        command -v "$REDIS_SERVER" >/dev/null || die "no '$REDIS_SERVER', which REDIS_SERVER names."
    else
        need_apt redis-server redis-server
    fi
}

# need_cargo_tool COMMAND CRATE: builds and installs the crate unless `cargo COMMAND` is there.
need_cargo_tool() {
    if ! command -v "cargo-$1" >/dev/null; then
        say "installing $2, for 'cargo $1'"
        cargo install --locked "$2"
    fi
}

# copy_tree DIRECTORY: what is here, without what was built, to a new directory, which may be in that of the builds.
copy_tree() {
    mkdir -p "$1"
    tar -cf - --exclude=./.git --exclude='./target*' --exclude="./${target#"$PWD"/}" --exclude='./mutants.out*' . | tar -xf - -C "$1"
}

# The target triple of this machine.
host() { rustc -vV | sed -n 's/^host: //p'; }
