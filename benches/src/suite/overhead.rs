//! What calls cost above the bare work, where the work takes most of the time.

use super::Bench;
use crate::contender::Kind;
use crate::report::Bound::AtMost;
use crate::rounds::{Id, Samples, Spread};
use alloc::format;

/// An overhead that is less is taken for one of so many nanoseconds: nothing has no multiple.
const LEAST_OVERHEAD: f64 = 1.0;

impl Bench {
    /// What the calls of a workload cost above the work that was run for them, and the target for that: three quarters of the best
    /// crate's at most. `works`: which figure tells how many works were run for each call, if it was not one.
    pub(super) fn judge_overhead<const N: usize>(
        &mut self,
        workload: &str,
        samples: &Samples<N>,
        works: Option<usize>,
    ) {
        let bare = samples.named("no coalescing");
        let over = |id| samples.pairs(id, bare, |of, bare| of[0] - bare[0] * works.map_or(1.0, |works| of[works]));
        let name = format!("{workload}: overhead");
        for id in samples.everybody().filter(|&id| id != bare) {
            let who = samples.who(id);
            self.report.figure(&name, &who.name, who.kind, "ns a call", over(id));
        }
        let median = |id: &Id| over(*id).median;
        let best = |kind| samples.all(kind).into_iter().min_by(|a, b| median(a).total_cmp(&median(b)));
        if let (Some(ours), Some(theirs)) = (best(Kind::Ours), best(Kind::Crate)) {
            // The medians, not the rounds: with a small difference below the line, the ratio of a round is noise.
            let ratio = median(&ours).max(LEAST_OVERHEAD) / median(&theirs).max(LEAST_OVERHEAD);
            let what = format!("{name}: {} / the best crate, {}", samples.who(ours).name, samples.who(theirs).name);
            self.report.target(&what, AtMost(0.75), Spread::exact(ratio));
        }
    }
}
