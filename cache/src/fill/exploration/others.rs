//! The steps of all but the callers: writers, time, failures.

use super::super::{Action, Fill};
use super::machine::{ENDED, FIRST_FILL, Machine, READ_TO_COME};
use super::rules::{Rules, Scheme};
use super::world::{Caller, World, small};

impl World {
    pub(super) fn writer_steps(&self, index: usize, rules: &Rules, machine: &mut Machine, after: &mut Vec<Self>) {
        let mut next = *self;
        match self.writers[index] {
            0 if rules.puts && self.is_being_written() => {}
            0 => {
                next.database += 1;
                next.writers[index] = next.database;
                after.push(next);
            }
            1 => {}
            written => {
                next.writers[index] = 1;
                next.invalidated = next.invalidated.max(written);
                for value in [0, written].into_iter().take(1 + usize::from(rules.puts)) {
                    let mut next = next;
                    next.write(value, rules.scheme, machine);
                    after.push(next);
                }
            }
        }
    }

    /// What may become of the caller, of its lease, and of what it has sent, without its doing.
    pub(super) fn lease_steps(&self, index: usize, rules: &Rules, machine: &mut Machine, after: &mut Vec<Self>) {
        let caller = &self.callers[index];
        let loads = |fill: &Fill| matches!(fill.action(), Action::Load { .. });
        let is_long = rules.long_loads && machine.fill(caller.fill).is_some_and(loads);
        if caller.holds && rules.scheme != Scheme::NoExpiry {
            let is_free = caller.fill == ENDED || is_long;
            if is_free || self.left.expiries > 0 {
                let mut next = *self;
                next.callers[index].holds = false;
                next.left.expiries -= u8::from(!is_free);
                after.push(next);
            }
        }
        if self.left.kills > 0 && caller.fill >= FIRST_FILL {
            let mut next = *self;
            next.left.kills -= 1;
            // The whole process, or the leader alone: then another of its callers goes on with the same token.
            for fill in [ENDED, READ_TO_COME] {
                next.callers[index] = Caller { fill, ..caller.ended() };
                after.push(next);
                if let Some(Action::Publish { epoch }) = machine.fill(caller.fill).map(Fill::action) {
                    next.callers[index].sent = (small(epoch), caller.published());
                    after.push(next);
                }
            }
        }
        if caller.sent != (0, 0) {
            let mut next = *self;
            next.callers[index].sent = (0, 0);
            // It arrives, or never does.
            after.push(next);
            next.publish(index, rules.scheme, caller.sent.0, caller.sent.1, machine);
            after.push(next);
        }
    }
}
