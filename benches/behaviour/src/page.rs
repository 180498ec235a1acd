//! The page of the docs that the table is on.

use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/behaviour.md");
const BEGIN: &str = "<!-- table: begin -->\n";
const END: &str = "<!-- table: end -->";

/// What is before the table, the table, and what is after it.
fn read() -> Result<[String; 3], String> {
    let page = fs::read_to_string(PAGE).map_err(|error| format!("docs/behaviour.md cannot be read: {error}"))?;
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?)));
    let (before, (table, after)) = parts.ok_or("docs/behaviour.md has no table between its markers")?;
    Ok([before, table, after].map(str::to_owned))
}

/// Puts the table where the page has its own.
pub(crate) fn write(table: &str) -> Result<(), String> {
    let [before, _, after] = read()?;
    let page = format!("{before}{BEGIN}\n{table}{END}{after}");
    fs::write(PAGE, page).map_err(|error| format!("docs/behaviour.md cannot be written: {error}"))
}

/// Whether the page has the same table; if not, which lines differ.
pub(crate) fn check(table: &str) -> Result<(), String> {
    let [_, on_page, _] = read()?;
    let (found, known): (Vec<&str>, Vec<&str>) = (table.trim().lines().collect(), on_page.trim().lines().collect());
    if found == known {
        return Ok(());
    }
    let mut differences = String::from("docs/behaviour.md says something else (-) than was found (+):\n");
    for (lines, others, mark) in [(&known, &found, '-'), (&found, &known, '+')] {
        for line in lines.iter().filter(|line| !others.contains(line)) {
            differences += &format!("{mark} {line}\n");
        }
    }
    Err(differences)
}
