#!/usr/bin/env bash
# Do all dependencies have a licence that we accept, and do they come from where they should? deny.toml says what that is.
#
#     bash ci/supply_chain.sh

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo
need_cargo_tool deny cargo-deny

# Not `advisories`: its answer changes from day to day with no change of ours, and it needs the network.
step "licences, bans, sources" cargo deny --workspace check --hide-inclusion-graph licenses bans sources
