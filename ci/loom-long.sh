#!/usr/bin/env bash
# Do the loom models hold with 3 preemptions? Takes long: for a night, or before a release.
#
#     bash ci/loom-long.sh [FILTER]

exec bash "$(dirname "${BASH_SOURCE[0]}")/loom.sh" 3 "$@"
