//! Many futures in one task.

use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// What all of them come to, in their order. So many are begun at once, each of the others when one of these has ended. Only
/// those that were woken are polled: if all were, many thousand answers would cost their square.
pub(crate) async fn together<F: Future>(most: usize, futures: Vec<F>) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    let woken = Arc::new(Woken::default());
    let mut places: Vec<_> = (0..futures.len().min(most.max(1))).map(|number| Place::new(number, &woken)).collect();
    let mut left = futures.len();
    let mut next = futures.into_iter().enumerate();
    // All are looked at first.
    let mut round: Vec<usize> = (0..places.len()).collect();
    poll_fn(|cx| {
        woken.listen(cx.waker());
        round.append(&mut woken.take());
        for number in round.drain(..) {
            let Place { running, waker, one } = &mut places[number];
            // Before it is polled: what wakes it meanwhile is not missed.
            one.is_woken.store(false, Ordering::SeqCst);
            loop {
                if running.is_none() {
                    *running = next.next().map(|(index, future)| (index, Box::pin(future)));
                }
                let Some((index, future)) = running else { break };
                let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) else { break };
                outputs[*index] = Some(output);
                left -= 1;
                *running = None;
            }
        }
        if left == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().map(|output| output.expect("all have ended")).collect()
}

/// All of them at once. They are made now, and not when this is first polled.
pub(crate) fn all<F: Future>(futures: impl Iterator<Item = F>) -> impl Future<Output = Vec<F::Output>> {
    together(usize::MAX, futures.collect())
}

/// Where one future after another runs.
struct Place<F> {
    running: Option<(usize, Pin<Box<F>>)>,
    waker: Waker,
    one: Arc<One>,
}

impl<F> Place<F> {
    fn new(number: usize, woken: &Arc<Woken>) -> Self {
        let one = Arc::new(One { number, is_woken: AtomicBool::new(true), woken: Arc::clone(woken) });
        Self { running: None, waker: Waker::from(Arc::clone(&one)), one }
    }
}

struct One {
    number: usize,
    is_woken: AtomicBool,
    woken: Arc<Woken>,
}

/// The places that were woken, and the task of all, unless it was woken too.
#[derive(Default)]
struct Woken(Mutex<(Vec<usize>, Option<Waker>)>);

impl Woken {
    fn listen(&self, waker: &Waker) {
        let waker = waker.clone();
        let before = self.0.lock().1.replace(waker);
        drop(before);
    }

    fn take(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.lock().0)
    }
}

impl Wake for One {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_woken.swap(true, Ordering::SeqCst) {
            return;
        }
        let task = {
            let mut woken = self.woken.0.lock();
            woken.0.push(self.number);
            woken.1.take()
        };
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event_listener::Event;
    use futures_lite::future::{block_on, poll_once, yield_now};
    use std::cell::Cell;
    use std::pin::pin;

    #[test]
    fn what_they_come_to_stands_in_their_order_and_no_more_are_on_than_allowed() {
        let (on, most_on) = (Cell::new(0), Cell::new(0));
        for most in [1, 3, 100] {
            most_on.set(0);
            let futures = (0..20).map(|number| {
                let (on, most_on) = (&on, &most_on);
                async move {
                    on.set(on.get() + 1);
                    most_on.set(most_on.get().max(on.get()));
                    for _ in 0..number % 4 {
                        yield_now().await;
                    }
                    on.set(on.get() - 1);
                    number
                }
            });
            assert_eq!(block_on(together(most, futures.collect())), (0..20).collect::<Vec<_>>());
            assert_eq!((on.get(), most_on.get()), (0, most.min(15)), "five of them end when they are first polled");
        }
        assert_eq!(block_on(together(0, vec![async { 7 }])), [7]);
        assert_eq!(block_on(together(5, Vec::<std::future::Ready<u8>>::new())), []);
    }

    #[test]
    fn only_those_that_were_woken_are_polled() {
        let events: Vec<Event> = (0..100).map(|_| Event::new()).collect();
        let polls = Cell::new(0);
        let wait = |event: &Event| {
            let mut listener = event.listen();
            let polls = &polls;
            poll_fn(move |cx| {
                polls.set(polls.get() + 1);
                Pin::new(&mut listener).poll(cx)
            })
        };
        let mut all = pin!(together(usize::MAX, events.iter().map(wait).collect()));
        block_on(async {
            assert!(poll_once(&mut all).await.is_none());
            assert_eq!(polls.get(), 100);
            for event in &events[1..] {
                event.notify(1);
                assert!(poll_once(&mut all).await.is_none());
            }
            assert_eq!(polls.get(), 199);
            events[0].notify(1);
            assert!(poll_once(&mut all).await.is_some());
        });
    }
}
