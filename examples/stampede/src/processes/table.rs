//! The figures for people and for scripts.

use core::fmt::Write as _;

use serde::Serialize;

use super::figures::Row;
use super::options::{Scenarios, Shared};
use crate::report::{count, milliseconds};

/// The figures as one line of JSON.
pub(crate) fn json(rows: &[Row]) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Report<'a> {
        scenarios: &'a [Row],
    }
    Ok(serde_json::to_string(&Report { scenarios: rows })? + "\n")
}

/// The figures as a table for each scenario.
pub(crate) fn text(shared: &Shared, rows: &[Row]) -> String {
    let server = if shared.redis_url.is_some() { "the server of --redis-url" } else { "a Redis server of their own" };
    let mut text = format!(
        "{} processes with {} callers in all share {server}.\n\
         Latencies are those of callers whose process was neither killed nor stopped.\n",
        shared.processes,
        count(shared.callers.into()),
    );
    for rows in rows.chunk_by(|one, next| one.name == next.name) {
        let _ = write!(text, "\n{}\n\n", heading(&rows[0]));
        let _ = writeln!(
            text,
            "{:<25}{:>7}{:>6}{:>7}{:>11}{:>11}   what happened",
            rows[0].name.name(),
            "loads",
            "lost",
            "stale",
            "p50",
            "p99"
        );
        for row in rows {
            let _ = writeln!(
                text,
                "  {:<23}{:>7}{:>6}{:>7}{:>11}{:>11}   {}",
                row.subject.title(),
                count(row.loads),
                count(row.lost),
                row.stale,
                milliseconds(row.p50_ms),
                milliseconds(row.p99_ms),
                row.story
            );
            if let Some(error) = &row.error {
                let _ = writeln!(text, "  {:<23}the first call that failed: {error}", "");
            }
        }
    }
    text
}

/// What happens in a scenario, on which terms.
fn heading(row: &Row) -> String {
    let terms = &row.terms;
    let [load, lease, ttl] =
        [terms.load, terms.lease, terms.ttl].map(|time| milliseconds(time.as_secs_f64() * 1_000.0));
    let lock = terms.lock_seconds;
    match row.name {
        Scenarios::Cold | Scenarios::All => {
            format!("There is no value, and all callers ask for it at once. A load takes {load}.")
        }
        Scenarios::Killed => format!(
            "The process that loads is killed in the middle. A load takes {load}, a lease of ours lasts {lease}, the naive \
             lock {lock} s."
        ),
        Scenarios::Paused => format!(
            "The process that loads v1 is stopped. The database changes to v2, and the others load that; then the first one \
             goes on.\nA load takes {load}, a lease of ours lasts {lease}, the naive lock {lock} s."
        ),
        Scenarios::LongLoad => {
            format!("A load takes {load}, which is longer than a lease of ours and the naive lock, {lock} s each.")
        }
        Scenarios::Refresh => format!(
            "The value lives for {ttl} and is read all the time. A load takes {load}; ours refreshes early, as by default. \
             Loads are those of all cycles."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::figures::Subject;
    use crate::processes::figures::tests::row;
    use crate::processes::options::Ways;

    #[test]
    fn the_json_is_one_line_of_the_documented_shape() {
        let rows = [row(Scenarios::LongLoad, Subject::Way(Ways::Naive), 4)];
        assert_eq!(
            json(&rows).expect("figures have no key that JSON lacks"),
            "{\"scenarios\":[{\"way\":\"naive\",\"name\":\"long_load\",\"processes\":8,\"callers\":128,\"loads\":4,\
             \"lost\":0,\"stale\":0,\"p50_ms\":1.5,\"p99_ms\":1234.0}]}\n"
        );
    }

    #[test]
    fn each_scenario_has_a_table_with_a_row_for_each_run() {
        let rows = [
            row(Scenarios::Cold, Subject::Way(Ways::None), 128),
            row(Scenarios::Cold, Subject::FlightsOnly, 8),
            row(Scenarios::Paused, Subject::Way(Ways::Ours), 2),
        ];
        let shared = Shared {
            redis: true,
            redis_url: None,
            processes: 8,
            callers: 128,
            scenario: Scenarios::All,
            way: Ways::All,
            cycles: 40,
        };
        let text = text(&shared, &rows);
        assert_eq!(text.matches("what happened").count(), 2, "{text}");
        assert_eq!(text.matches("all is well").count(), 3, "{text}");
        assert!(text.contains("1.23 s") && text.contains("ours, without leases"), "{text}");
    }
}
