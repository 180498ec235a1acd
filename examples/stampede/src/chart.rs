//! A bar chart of a timeline, in characters.

use core::fmt::Write as _;

const ROWS: u32 = 6;
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One column for each value; `peak` is what reaches the top, so that several charts can have the same scale.
pub(crate) fn bars(timeline: &[u32], peak: u32) -> String {
    let peak = peak.max(1);
    let mut chart = String::new();
    for row in (0..ROWS).rev() {
        let label = match row {
            0 => "0".to_owned(),
            _ if row == ROWS - 1 => peak.to_string(),
            _ => String::new(),
        };
        let _ = write!(chart, "{label:>7} │");
        for &value in timeline {
            let filled = eighths(value, peak).saturating_sub(row * 8).min(8);
            chart.push(EIGHTHS[filled as usize]);
        }
        chart.truncate(chart.trim_end_matches(' ').len());
        chart.push('\n');
    }
    chart
}

/// The height of a bar; a single query is still to be seen beside a thousand.
fn eighths(value: u32, peak: u32) -> u32 {
    let height = u64::from(value) * u64::from(ROWS * 8) / u64::from(peak);
    (height as u32).max(u32::from(value > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_value_and_never_vanish() {
        let chart = bars(&[0, 48, 24, 1, 0], 48);
        let expected = "     48 │ █\n        │ █\n        │ █\n        │ ██\n        │ ██\n      0 │ ██▁\n";
        assert_eq!(chart, expected);
        assert!(bars(&[1], 100_000).ends_with("0 │▁\n"));
    }

    #[test]
    fn a_timeline_of_nothing_is_an_empty_chart() {
        assert_eq!(bars(&[0, 0], 0).lines().count(), ROWS as usize);
        assert!(!bars(&[0, 0], 0).contains(&EIGHTHS[1..]));
    }
}
