//! What stands in for threads and clocks where there are none.

use core::num::NonZeroU32;
use core::time::Duration;

/// Nobody sleeps here.
#[derive(Debug)]
pub(crate) struct WaitQueue;

impl WaitQueue {
    pub(crate) const fn new() -> Self {
        Self
    }

    pub(crate) fn notify_one(&self) {}

    pub(crate) fn notify_all(&self) {}

    pub(crate) fn notify_last(&self) {}
}

/// Nobody can be told apart, so nothing is reported by thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadNumber {}

impl ThreadNumber {
    pub(crate) const fn current() -> Option<Self> {
        None
    }

    pub(crate) const fn of_work() -> Option<Self> {
        None
    }

    pub(crate) fn is_here(self) -> bool {
        match self {}
    }

    pub(crate) fn go_by(_number: Option<Self>) -> GoingBy {
        GoingBy
    }
}

/// There is nothing to go by.
#[derive(Debug)]
pub(crate) struct GoingBy;

/// There is no clock, so no flight has an age.
#[derive(Debug)]
pub(crate) enum AgeClock {}

impl AgeClock {
    pub(crate) fn limit(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn now(&self) -> NonZeroU32 {
        match *self {}
    }

    pub(crate) fn duration_of(&self, _ticks: u32) -> Duration {
        match *self {}
    }
}
