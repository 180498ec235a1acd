//! Polling by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

pub(crate) type Group = oneflight::AsyncGroup<u32, u32>;

/// A task that is polled when the test says so, and counts its wake-ups and polls.
pub(crate) struct Task<'a, T> {
    future: Option<Pin<Box<dyn Future<Output = T> + 'a>>>,
    wakes: Arc<Wakes>,
    pub(crate) polls: usize,
}

#[derive(Default)]
pub(crate) struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<'a, T> Task<'a, T> {
    pub(crate) fn new(future: impl Future<Output = T> + 'a) -> Self {
        Self { future: Some(Box::pin(future)), wakes: Arc::default(), polls: 0 }
    }

    /// A task that has been polled once and waits.
    pub(crate) fn waiting(future: impl Future<Output = T> + 'a) -> Self {
        let mut task = Self::new(future);
        assert!(task.poll().is_pending(), "there is nothing to wait for");
        task
    }

    /// A task that is polled with the waker of another: both are in one `select!`.
    pub(crate) fn beside<U>(other: &Task<'_, U>, future: impl Future<Output = T> + 'a) -> Self {
        Self { future: Some(Box::pin(future)), wakes: Arc::clone(&other.wakes), polls: 0 }
    }

    /// From now on it is polled with a waker of its own.
    pub(crate) fn move_to_itself(&mut self) {
        self.wakes = Arc::default();
    }

    pub(crate) fn poll(&mut self) -> Poll<T> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.poll_with(&waker)
    }

    pub(crate) fn poll_with(&mut self, waker: &Waker) -> Poll<T> {
        self.polls += 1;
        let future = self.future.as_mut().expect("it has not ended");
        let polled = future.as_mut().poll(&mut Context::from_waker(waker));
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }

    pub(crate) fn ready(&mut self) -> T {
        match self.poll() {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it still waits"),
        }
    }

    /// How often it has been woken.
    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }

    /// How many hold this task's waker, the task itself included.
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.wakes)
    }

    pub(crate) fn leak(mut self) {
        std::mem::forget(self.future.take());
    }
}

/// Polls every task that was woken since it was last polled, until none is left; returns what they came to.
pub(crate) fn run_woken<T>(tasks: &mut [Task<'_, T>]) -> Vec<Option<T>> {
    let mut values: Vec<Option<T>> = tasks.iter().map(|_| None).collect();
    let mut seen = vec![0; tasks.len()];
    loop {
        let mut polled = false;
        for (index, task) in tasks.iter_mut().enumerate() {
            let wakes = task.wakes();
            if task.future.is_some() && wakes > seen[index] {
                seen[index] = wakes;
                polled = true;
                if let Poll::Ready(value) = task.poll() {
                    values[index] = Some(value);
                }
            }
        }
        if !polled {
            return values;
        }
    }
}

/// A future that ends once it is opened, for all that await a clone of it.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<GateState>>);

#[derive(Default)]
struct GateState {
    open: bool,
    wakers: Vec<Waker>,
    polls: usize,
}

impl Gate {
    pub(crate) fn open(&self) {
        let wakers = {
            let mut state = self.0.lock().unwrap();
            state.open = true;
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Wakes whoever waits, without opening.
    pub(crate) fn stir(&self) {
        let wakers = std::mem::take(&mut self.0.lock().unwrap().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn polls(&self) -> usize {
        self.0.lock().unwrap().polls
    }
}

impl Future for Gate {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap();
        state.polls += 1;
        if state.open {
            return Poll::Ready(());
        }
        state.wakers.push(cx.waker().clone());
        Poll::Pending
    }
}

/// Wakes itself and lets others run, this many times.
pub(crate) struct Yield(pub(crate) usize);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Counts how often work was started and how often it was dropped.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<(AtomicUsize, AtomicUsize)>);

/// Lives as long as one run of a work.
pub(crate) struct Run(Runs);

impl Runs {
    pub(crate) fn start(&self) -> Run {
        self.0.0.fetch_add(1, Ordering::SeqCst);
        Run(self.clone())
    }

    pub(crate) fn started(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    pub(crate) fn dropped(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.0.0.1.fetch_add(1, Ordering::SeqCst);
    }
}

/// Work that waits at `gate` and comes to `value`.
pub(crate) fn work(
    runs: &Runs,
    gate: &Gate,
    value: u32,
) -> impl FnOnce() -> Pin<Box<dyn Future<Output = u32> + Send>> + use<> {
    let (runs, gate) = (runs.clone(), gate.clone());
    move || {
        let run = runs.start();
        Box::pin(async move {
            let _run = run;
            gate.await;
            value
        })
    }
}

/// The ways in which a task calls.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Owned,
    Inline,
    Batch,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Owned, Self::Inline, Self::Batch];

    pub(crate) fn call<'g, F: Future<Output = u32> + Send + 'static>(
        self,
        group: &'g Group,
        key: &'g u32,
        mut work: impl FnMut() -> F + Send + 'g,
    ) -> Pin<Box<dyn Future<Output = u32> + Send + 'g>> {
        match self {
            Self::Owned => Box::pin(group.do_call(key, work)),
            Self::Inline => Box::pin(group.do_call_inline(key, work)),
            Self::Batch => Box::pin(async move {
                let load = |_: Vec<&u32>| {
                    let work = work();
                    async { vec![work.await] }
                };
                group.do_many([key], load).await[0]
            }),
        }
    }
}

/// Lets others run until it is so; fails rather than hangs.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < limit, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// What a panic was about.
pub(crate) fn message(payload: Box<dyn std::any::Any + Send>) -> String {
    match payload.downcast::<&str>() {
        Ok(text) => text.to_string(),
        Err(payload) => payload.downcast::<String>().map_or_else(|_| "another type".into(), |text| *text),
    }
}

/// An executor that polls a task on the spot when it is woken, however deep in somebody else's code that is.
pub(crate) struct PollsInWake;

impl PollsInWake {
    pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Arc<OnTheSpot> {
        let task = Arc::new(OnTheSpot { future: Mutex::new(Some(Box::pin(future))), woken: AtomicUsize::new(0) });
        Wake::wake(Arc::clone(&task));
        task
    }
}

pub(crate) struct OnTheSpot {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    woken: AtomicUsize,
}

impl OnTheSpot {
    pub(crate) fn has_ended(&self) -> bool {
        self.future.lock().unwrap().is_none()
    }
}

impl Wake for OnTheSpot {
    fn wake(self: Arc<Self>) {
        // Already being polled, here or elsewhere: that one polls again.
        if self.woken.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        let waker = Waker::from(Arc::clone(&self));
        loop {
            let seen = self.woken.load(Ordering::SeqCst);
            let mut future = self.future.lock().unwrap();
            if future.as_mut().is_some_and(|future| future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()) {
                *future = None;
            }
            drop(future);
            if self.woken.compare_exchange(seen, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return;
            }
        }
    }
}

/// Fails rather than hangs.
pub(crate) fn within_a_minute(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match ended.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        _ => thread.join().expect("the test itself"),
    }
}
