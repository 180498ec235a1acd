//! How tasks drive their calls: to the end, part of the way, or not for a while.

use crate::alarm::Alarm;
use crate::bomb::Fuse;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

type BoxCall<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How a call is driven.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Manner {
    /// To its end.
    Through,
    /// Dropped after so many polls.
    Cancel(u32),
    /// Not polled for a while after so many polls; then dropped, or driven to its end.
    Park(u32, Duration, bool),
}

impl Manner {
    pub(crate) fn random(rng: &mut fastrand::Rng) -> Self {
        match rng.u8(..8) {
            0..2 => Self::Cancel(rng.u32(..4)),
            2 => Self::Park(rng.u32(1..4), Duration::from_micros(rng.u64(..800)), rng.bool()),
            _ => Self::Through,
        }
    }
}

/// Drives a call. Its bomb is armed while it is polled, and while it is dropped. `None` if it was dropped before its end.
pub(crate) async fn drive<T>(mut call: BoxCall<'_, T>, manner: Manner, fuse: &mut Fuse, alarm: &Alarm) -> Option<T> {
    let most = match manner {
        Manner::Through => u32::MAX,
        Manner::Cancel(polls) | Manner::Park(polls, ..) => polls,
    };
    if let Some(got) = poll_times(&mut call, most, fuse).await {
        return Some(got);
    }
    if let Manner::Park(_, time, goes_on) = manner {
        alarm.sleep(time).await;
        if goes_on && let Some(got) = poll_times(&mut call, u32::MAX, fuse).await {
            return Some(got);
        }
    }
    let _armed = fuse.arm();
    drop(call);
    None
}

/// Polls a call up to so many times.
async fn poll_times<T>(call: &mut BoxCall<'_, T>, most: u32, fuse: &mut Fuse) -> Option<T> {
    let mut polls = 0;
    poll_fn(|cx| {
        if polls < most {
            polls += 1;
            let _armed = fuse.arm();
            if let Poll::Ready(got) = call.as_mut().poll(cx) {
                return Poll::Ready(Some(got));
            }
        }
        if polls < most { Poll::Pending } else { Poll::Ready(None) }
    })
    .await
}
