#!/usr/bin/env bash
# Are the docs whole: do they build without a warning, with and without features, has every public item of both packages an
# example, say all ways to call what is visible to whom, is each feature of the cache told, and do the links of the pages lead
# somewhere?
#
#     bash ci/docs.sh
#
# The examples themselves are run by the tests. Links to other sites are not followed.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo
need_apt git git
need_apt jq jq

docs() {
    RUSTDOCFLAGS="${RUSTDOCFLAGS:-} -D warnings" cargo doc --quiet --no-deps "$@"
}

all_features=oneflight/deadlock-detection,oneflight-cache/${cache_features//,/,oneflight-cache/}

# What a reader can look up: a method that a trait asks for is shown by the example of the trait, a field by that of its type.
# shellcheck disable=SC2016 # the backquotes are those of an example
items='.index[] | select(.crate_id == 0 and .visibility == "public")
    | select(.inner | keys[0] | IN("struct", "enum", "union", "trait", "function", "macro"))'

# examples PACKAGE FEATURES: rustdoc says what is public, in a form that only its nightly has without RUSTC_BOOTSTRAP.
examples() {
    local target=$target/examples package=$1 missing number
    RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$target \
        cargo rustdoc --quiet -p "$package" --lib --features "$2" -- -Zunstable-options --output-format json
    local listed=$target/doc/${package//-/_}.json
    number=$(jq "[$items] | length" "$listed")
    ((number > 0)) || die "found no public item of $package: nothing was looked at"
    missing=$(jq -r "$items"' | select((.docs // "") | contains("```") | not)
        | "\(.span.filename):\(.span.begin[0]): \(.name) has no example"' "$listed" | sort)
    if [[ -n $missing ]]; then
        printf '%s\n' "$missing"
        die "not every public item of $package has an example"
    fi
    printf '%d public items of %s, each with an example\n' "$number" "$package"
}

# memory PACKAGE, after its examples: whatever takes work tells what is seen of it.
memory() {
    local takes_work='.index[] | select(.crate_id == 0 and any(.inner.function?.sig.inputs[]?; .[0] == "work"))' missing number
    local listed=$target/examples/doc/${1//-/_}.json
    number=$(jq "[$takes_work] | length" "$listed")
    ((number > 0)) || die "found no way to call of $1: nothing was looked at"
    missing=$(jq -r "$takes_work"' | select((.docs // "") | contains("# Memory") | not)
        | "\(.span.filename):\(.span.begin[0]): \(.name) does not say what is visible"' "$listed" | sort)
    if [[ -n $missing ]]; then
        printf '%s\n' "$missing"
        die "not every way to call of $1 says what is visible"
    fi
    printf '%d ways to call of %s, each with what is visible\n' "$number" "$1"
}

# prose FILE: without its blocks of code.
prose() { awk '/^ *```/ { code = !code; next } !code' "$1"; }

# anchors FILE: those of its headings, as GitHub makes them.
anchors() {
    prose "$1" | sed -n 's/^##* *//p' | tr '[:upper:]' '[:lower:]' |
        sed 's/\[\([^]]*\)\]([^)]*)/\1/g; s/[^[:alnum:] _-]//g; s/ /-/g'
}

links() {
    local page link file anchor number=0 broken=0
    while IFS= read -r page; do
        while IFS= read -r link; do
            number=$((number + 1))
            file=${link%%#*} anchor=
            [[ $link == *'#'* ]] && anchor=${link#*#}
            file=$(dirname "$page")/$file
            [[ -n ${link%%#*} ]] || file=$page
            [[ -d $file && -n $anchor ]] && file=$file/README.md
            if [[ ! -e $file ]]; then
                printf '%s: %s: there is no such file\n' "$page" "$link"
                broken=$((broken + 1))
            elif [[ -n $anchor ]] && ! anchors "$file" | grep -qxF -e "$anchor"; then
                printf '%s: %s: there is no such heading\n' "$page" "$link"
                broken=$((broken + 1))
            fi
        done < <(prose "$page" | grep -oE '\]\([^)]+\)|^\[[^]]+\]: [^ ]+' | sed -E 's/^\]\(([^) ]*).*/\1/; s/^\[[^]]*\]: //' |
            grep -vE '^[a-z]+:' || true)
    done < <(git ls-files --cached --others --exclude-standard '*.md')
    ((number > 0)) || die "found no link: nothing was looked at"
    ((broken == 0)) || die "$broken of $number links lead nowhere"
    printf '%d links\n' "$number"
}

# features: what can be switched on is told where the docs of the cache begin.
features() {
    local feature
    for feature in ${cache_features//,/ } loom; do
        grep -q "^//! | .*\`$feature\`" cache/src/lib.rs || die "the docs of the cache do not name the feature $feature"
    done
}

step "links" links
step "features" features
step "docs" docs -p oneflight -p oneflight-cache
step "docs, features" docs -p oneflight -p oneflight-cache --features "$all_features"
step "examples, library" examples oneflight deadlock-detection
step "memory, library" memory oneflight
step "examples, cache" examples oneflight-cache "$cache_features"
