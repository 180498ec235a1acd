#!/usr/bin/env bash
# Prints the table of the models for loom-tests/README.md: rule, mutants, and iterations as counted now. Takes some minutes.
#
#     bash loom-tests/table.sh

source "$(dirname "${BASH_SOURCE[0]}")/../ci/lib.sh"

need_cargo

# Lines `model FILE::NAME: N iterations, ..`.
count() {
    RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" CARGO_TARGET_DIR=$target/loom LOOM_MAX_PREEMPTIONS=$1 \
        cargo test --quiet --release -p oneflight-loom-tests -- --nocapture --test-threads=1 | grep -o 'model .*'
}

two=$(count 2)
three=$(count 3)

# iterations COUNTS MODEL
iterations() { sed -n "s/^model $2: \([0-9]*\) iterations.*/\1/p" <<<"$1" | sed -E ':a; s/([0-9])([0-9]{3})($|,)/\1,\2\3/; ta'; }

# The patches that name the model, as code.
mutants() {
    local patch list=
    while read -r patch; do
        list+="${list:+, }\`$(basename "$patch" .patch)\`"
    done < <(grep -lE "^Killed by: $1(,|\$)" loom-tests/mutants/*.patch)
    printf '%s' "$list"
}

printf '| model | rule | mutants | 2 preemptions | 3 preemptions |\n|---|---|---|---:|---:|\n'
while read -r _ model _; do
    model=${model%:}
    rule=$(sed -n '1s/^\/\/! \([^:]*\):.*/\1/p' "loom-tests/tests/${model%%::*}.rs")
    printf '| \x60%s\x60 | %s | %s | %s | %s |\n' \
        "$model" "$rule" "$(mutants "$model")" "$(iterations "$two" "$model")" "$(iterations "$three" "$model")"
done <<<"$two"
