#!/usr/bin/env bash
# Is the tree tidy: formatted, free of warnings, documented, packageable, and free of what must not be committed?
#
#     bash ci/check.sh

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo
need_component fmt rustfmt
need_component clippy clippy
need_apt git git

# Every warning is an error here, and only here: a newer compiler's new warning must not break a user's build.
clippy() { cargo clippy --quiet "$@" -- -D warnings; }

# `deadlock-detection` is on in the workspace's.
clippy_of_library() {
    clippy -p oneflight --all-targets
    # The tests use threads, so without `std` there is only the library.
    clippy -p oneflight --lib --no-default-features --features critical-section
}

clippy_of_cache() {
    clippy -p oneflight-cache --all-targets
    clippy -p oneflight-cache --all-targets --features "$cache_features"
}

# The code that only loom sees, which the ordinary build skips.
clippy_of_models() {
    RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" CARGO_TARGET_DIR=$target/loom clippy -p oneflight-loom-tests --all-targets
}

package() {
    # The builds above have fetched all that the locked versions need; without this it would ask the registry for news.
    local options=(--offline)
    # By hand one packages what one has; in CI what is committed.
    if [[ -z ${CI:-} ]]; then
        options+=(--allow-dirty)
    fi
    # The second is built with the first as it was packaged. Cargo keeps what it has once unpacked and built of a name and a
    # version, and ours changes while it keeps both.
    rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/oneflight-[0-9]* "$target/package-check"
    CARGO_TARGET_DIR=$target/package-check cargo package --quiet -p oneflight -p oneflight-cache "${options[@]}"
}

# none WHAT PATTERN [PATHSPEC..]: no line matches, in any file that is committed or could be.
none() {
    local what=$1 pattern=$2 status=0
    shift 2
    git grep --untracked -nIE -e "$pattern" -- "$@" || status=$?
    case $status in
        0) die "$what" ;;
        1) ;;
        *) die "git grep failed: this needs a git work tree" ;;
    esac
}

no_strays() {
    none "a path of one particular machine" '(^|[^[:alnum:]_.~-])/(work|root|home/[a-z_]+)/'
    none "a package registry's or mirror's host" 'https?://(index|static|registry|mirrors?|proxy|nexus|artifactory|pypi|npm|deb|apt|security)[a-z0-9-]*[.][a-z0-9.-]+'
    none "a model or test that is never run" '#!?\[ignore' '*.rs'
    if grep '^source = ' Cargo.lock | grep -vF '"registry+https://github.com/rust-lang/crates.io-index"'; then
        die "a locked dependency that does not come from crates.io"
    fi
}

lock_file() { cargo metadata --quiet --locked --format-version 1 >/dev/null; }

shell_scripts() {
    local script scripts
    scripts=$(git ls-files --cached --others --exclude-standard '*.sh' .ci/run)
    for script in $scripts; do
        bash -n "$script"
    done
    if command -v shellcheck >/dev/null; then
        # shellcheck disable=SC2086 # one word a script: none has a space in its name
        shellcheck --severity=warning --external-sources --source-path=SCRIPTDIR $scripts
    else
        say "no shellcheck here: the shell scripts were only parsed"
    fi
}

step "no strays" no_strays
step "shell scripts" shell_scripts
step "the lock file is up to date" lock_file
step "format" cargo fmt --all --check
step "clippy, workspace" clippy --workspace --all-targets --features oneflight/deadlock-detection
step "clippy, library by feature" clippy_of_library
step "clippy, cache by feature" clippy_of_cache
step "clippy, models" clippy_of_models
step "docs" bash ci/docs.sh
step "package" package
