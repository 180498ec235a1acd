//! What the store does for each request: the specification of any real one.

use super::super::{Event, Version};
use super::machine::{GONE, Machine, REFRESH_TO_COME};
use super::rules::Scheme;
use super::world::{FIRST_NONCE, World};
use core::time::Duration;

impl World {
    pub(super) fn free_lease(&mut self) {
        self.callers.iter_mut().for_each(|caller| caller.holds = false);
    }

    fn store(&mut self, value: u8, machine: &mut Machine) {
        machine.stores += 1;
        self.value = value;
        let is_known = |nonce: &Version| {
            self.callers.iter().any(|caller| {
                let seen = machine.fill(caller.fill).and_then(|fill| fill.seen);
                let is_first = caller.fill == REFRESH_TO_COME && *nonce == FIRST_NONCE.into();
                is_first || seen.is_some_and(|seen| seen.version == *nonce)
            })
        };
        self.nonce = (1..).find(|nonce| !is_known(nonce)).expect("there are few callers") as u8;
    }

    pub(super) fn acquire(&mut self, index: usize, seen: Option<Version>, scheme: Scheme) -> Event {
        match (seen, self.value) {
            (Some(_), 0) => return Event::Miss { unreadable: None },
            (seen, value) if value != 0 && seen != Some(self.nonce.into()) => return Event::Filled,
            _ => {}
        }
        if self.callers.iter().enumerate().any(|(other, caller)| other != index && caller.holds) {
            return Event::Held { left: Duration::ZERO, holder: 1, listening: false };
        }
        self.callers[index].holds = true;
        if scheme.has_epochs() && scheme != Scheme::EpochOfWrites && self.epoch == 0 {
            self.epoch = 1;
        }
        Event::Acquired { epoch: self.epoch.into() }
    }

    pub(super) fn publish(
        &mut self,
        index: usize,
        scheme: Scheme,
        epoch: u8,
        value: u8,
        machine: &mut Machine,
    ) -> Event {
        let holds = self.callers[index].holds;
        let event = match scheme {
            _ if scheme.has_epochs() && self.epoch != epoch => match (self.epoch, self.value) {
                (0, 1..) => Event::Superseded,
                _ => Event::Invalidated,
            },
            Scheme::NoToken | Scheme::TokenOnRelease => Event::Stored,
            _ if holds => Event::Stored,
            _ if scheme.has_epochs() && value == 0 && self.callers.iter().all(|caller| !caller.holds) => Event::Stored,
            Scheme::HolderOnly => Event::Superseded,
            _ if self.value == 0 => Event::Late,
            _ => Event::Superseded,
        };
        if let Event::Stored | Event::Late = event {
            self.replace(value, machine);
        }
        if event == Event::Stored {
            self.release(index, scheme);
            if scheme != Scheme::EpochOfWrites {
                self.lose_epoch(scheme, machine);
            }
        }
        event
    }

    /// A write: of `value`, or of nothing if that is 0.
    pub(super) fn write(&mut self, value: u8, scheme: Scheme, machine: &mut Machine) {
        self.replace(value, machine);
        if scheme.has_epochs() {
            self.free_lease();
            match scheme {
                Scheme::EpochOfWrites => self.epoch += 1,
                _ => self.lose_epoch(scheme, machine),
            }
        }
    }

    /// By `value`, or by nothing if that is 0.
    fn replace(&mut self, value: u8, machine: &mut Machine) {
        (self.value, self.nonce) = (0, 0);
        if value != 0 {
            self.store(value, machine);
        }
    }

    pub(super) fn lose_epoch(&mut self, scheme: Scheme, machine: &mut Machine) {
        if matches!(scheme, Scheme::Ours | Scheme::NoExpiry) && self.epoch != 0 {
            for caller in &mut self.callers {
                caller.fill = machine.outlive(caller.fill, self.epoch);
                if caller.sent.0 == self.epoch {
                    caller.sent.0 = GONE;
                }
            }
        }
        self.epoch = 0;
    }

    /// What the store may lose: the epoch, the value, everything.
    pub(super) fn losses(self, scheme: Scheme, machine: &mut Machine) -> [Self; 3] {
        let (mut no_epoch, no_value) = (self, Self { value: 0, nonce: 0, ..self });
        no_epoch.lose_epoch(scheme, machine);
        let mut nothing = no_value;
        nothing.lose_epoch(scheme, machine);
        nothing.free_lease();
        [no_epoch, no_value, nothing]
    }

    pub(super) fn release(&mut self, index: usize, scheme: Scheme) {
        if scheme == Scheme::NoToken {
            self.free_lease();
        }
        self.callers[index].holds = false;
    }
}
