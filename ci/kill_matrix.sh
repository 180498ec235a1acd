#!/usr/bin/env bash
# Whoever fails, killed, stopped, restarted or made to forget, at whatever instant of a load: is no caller lost, is nothing stale
# stored over what is newer, and are the loads bounded?
#
#     bash ci/kill_matrix.sh [ROUNDS]
#
# Tries each of them at ROUNDS (default 50) random instants. Each prints its seed; ONEFLIGHT_MATRIX_SEED=.. repeats one.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

rounds=${1:-50}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "usage: bash ci/kill_matrix.sh [ROUNDS]"

need_cargo
need_redis

matrix() {
    ONEFLIGHT_MATRIX_ROUNDS=$rounds cargo test -p oneflight-cache --features "$cache_features" --test redis_faults -- \
        matrix:: --nocapture
}

step "kill matrix, $rounds rounds" matrix
