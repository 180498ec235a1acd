#!/usr/bin/env bash
# Does the table in docs/behaviour.md still say what oneflight and the crates beside it do?
#
#     bash ci/behaviour.sh
#
# Runs every case against every crate, minutes of it, and ends with status 1 if the page says something else. ci/test.sh does not
# call it: what it checks is mostly what others do. Run it after a change of behaviour, of a case, or of a locked version; then
# `cargo run --release -p oneflight-behaviour -- --write` puts the new table on the page. Linux only.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo

check() {
    # The table itself is on the page.
    cargo run --quiet --release -p oneflight-behaviour -- --check >/dev/null
}

step "build" cargo build --quiet --release -p oneflight-behaviour
step "the table of behaviour" check
