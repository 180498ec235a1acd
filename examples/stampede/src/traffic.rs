//! Sends the scheduled requests through a way, from many threads.

use core::hint::black_box;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::io;
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use indicatif::ProgressBar;

use crate::measure::Request;
use crate::schedule::Schedule;
use crate::ways::Way;

/// How often the progress is drawn.
const REDRAW: Duration = Duration::from_millis(50);

/// Serves every request of the schedule and returns what became of each.
///
/// The load is open: a request comes when the schedule says, whether or not earlier ones have been answered, as visitors
/// do not wait for each other. If all threads are busy it waits for one, and that counts: latency is measured from
/// the scheduled moment, not from the moment at which a thread got round to it.
///
/// # Errors
///
/// The operating system could not start a thread.
pub(crate) fn drive(
    schedule: &Schedule,
    threads: u16,
    start: Instant,
    name: &str,
    way: &dyn Way,
    progress: &ProgressBar,
) -> io::Result<Vec<Request>> {
    let arrivals = &schedule.arrivals;
    let next = AtomicUsize::new(0);
    let serve = || {
        let mut requests = Vec::new();
        while let Some(arrival) = arrivals.get(next.fetch_add(1, Ordering::Relaxed)) {
            let due = start + arrival.at;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let served = way.page(arrival.product);
            let (waited_for, error) = match served.page {
                Ok(page) => {
                    // Here a server would send it.
                    black_box(&page.html);
                    (served.waited.then_some(page.follows), None)
                }
                Err(error) => (None, Some(error)),
            };
            requests.push(Request { product: arrival.product, latency: due.elapsed(), waited_for, error });
        }
        requests
    };

    thread::scope(|scope| {
        let mut workers = Vec::new();
        for number in 0..threads {
            let name = format!("{name} {number}");
            match thread::Builder::new().name(name).spawn_scoped(scope, serve) {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    // Those already started would serve everything before the error came through.
                    next.store(arrivals.len(), Ordering::Relaxed);
                    let explained = format!("cannot start thread {number} of {threads}: {error}");
                    return Err(io::Error::new(error.kind(), explained));
                }
            }
        }
        // From here, not from the threads: the bar has a lock, and they should meet on no lock that a server has not.
        while !workers.iter().all(ScopedJoinHandle::is_finished) {
            progress.set_position(next.load(Ordering::Relaxed).min(arrivals.len()) as u64);
            thread::sleep(REDRAW);
        }
        let mut requests = Vec::with_capacity(arrivals.len());
        for worker in workers {
            requests.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        Ok(requests)
    })
}
