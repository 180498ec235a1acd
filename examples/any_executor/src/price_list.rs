//! What the callers want: prices from a slow source, which answers when a scene lets it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender};

/// A price in cents.
pub type Price = u32;

/// The end of a scene that hangs; decides nothing else.
const LIMIT: Duration = Duration::from_secs(60);

/// Why the channel cannot be closed.
const OPEN: &str = "the price list holds both ends";

/// A price list that counts how often it is asked. Nothing in it belongs to a runtime.
#[derive(Clone)]
pub(crate) struct PriceList {
    lookups: Arc<AtomicUsize>,
    answers: Receiver<Price>,
    answer: Sender<Price>,
}

impl PriceList {
    pub(crate) fn new() -> Self {
        let (answer, answers) = async_channel::unbounded();
        Self { lookups: Arc::default(), answers, answer }
    }

    /// Looks a price up, and waits for the answer.
    pub(crate) async fn look_up(self) -> Price {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        self.next_answer().await
    }

    /// Looks the price and the postage up, one after the other.
    pub(crate) async fn look_up_with_postage(self) -> Price {
        let postage = self.clone();
        self.look_up().await + postage.next_answer().await
    }

    /// Looks a price up from a thread.
    pub(crate) fn look_up_blocking(&self) -> Price {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        self.answers.recv_blocking().expect(OPEN)
    }

    /// Lets the source give its next answer.
    pub(crate) fn answer(&self, price: Price) {
        self.answer.try_send(price).expect(OPEN);
    }

    /// How many answers wait for somebody to take them.
    pub(crate) fn unread(&self) -> usize {
        self.answers.len()
    }

    /// How many lookups were begun.
    pub(crate) fn lookups(&self) -> usize {
        self.lookups.load(Ordering::Relaxed)
    }

    async fn next_answer(&self) -> Price {
        self.answers.recv().await.expect(OPEN)
    }
}

/// Waits until something holds that others are about to bring about.
///
/// # Panics
///
/// If it takes a minute.
pub(crate) fn wait_until(holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "still waiting after {LIMIT:?}");
        thread::yield_now();
    }
}
