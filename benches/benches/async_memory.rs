//! Allocations, heap and sizes of `AsyncGroup` and its peers: exact figures, so no rounds. Nothing here is timed, since the
//! allocator of this program counts.
//!
//!     cargo bench -p oneflight-benches --bench async_memory

extern crate alloc;

use allocation_counter::{measure, opt_out};
use core::convert::Infallible;
use core::future::{Future, poll_fn};
use core::hint::black_box;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use oneflight::AsyncGroup;
use oneflight_benches::contender::floor::{Boxed, Floor};
use oneflight_benches::contender::tasks::{Coalesces, Inline, SharedMap, moka, quick_cache};
use oneflight_benches::load;
use oneflight_benches::options::Options;
use oneflight_benches::report::Bound::AtMost;
use oneflight_benches::report::Report;
use oneflight_benches::rounds::Spread;
use rs_singleflight::Group;
use singleflight_async::SingleFlight;
use std::process::ExitCode;
use uniflight::Merger;

/// Calls that an average is taken over.
const CALLS: usize = 1_000;

/// Keys in flight, and tasks that wait: of these numbers, the one with the worst result counts.
const CROWDS: [usize; 2] = [1_000, 100_000];

/// What is found out about a contender.
trait Question {
    fn answer<C: Coalesces>(&self, make: impl Fn() -> C) -> f64;
}

/// Asks everybody. The answers of oneflight come back: of `do_call`, and of `do_call_inline`.
fn ask(report: &mut Report, name: &str, unit: &str, question: &impl Question) -> [Spread; 2] {
    let mut note = |contender, answer: f64| {
        report.figure(name, contender, unit, Spread::exact(answer));
        Spread::exact(answer)
    };
    let owned = note("oneflight", question.answer(AsyncGroup::<u64, u64>::new));
    let inline = note("oneflight, inline", question.answer(Inline::default));
    note("quick_cache", question.answer(quick_cache));
    note("singleflight-async", question.answer(SingleFlight::<u64, u64>::new));
    note("uniflight", question.answer(Merger::<u64, u64>::new));
    note("rs-singleflight", question.answer(Group::<u64, u64, Infallible>::new));
    note("moka", question.answer(moka));
    note("a map of Shared", question.answer(SharedMap::default));
    note("floor, inline", question.answer(Floor::new));
    note("floor, boxed", question.answer(Boxed::default));
    [owned, inline]
}

fn main() -> ExitCode {
    let options = Options::from_command_line();
    let mut report = Report::new(&options);
    let crowds = CROWDS.map(|crowd| options.size(crowd));
    let alone = "task alone, u64 key: allocations";
    if options.wants(alone) {
        let [owned, inline] = ask(&mut report, alone, "a call", &Allocations);
        report.target(&format!("{alone}, oneflight"), AtMost(2.0), owned);
        report.target(&format!("{alone}, oneflight, inline"), AtMost(0.0), inline);
    }
    for crowd in crowds {
        let name = format!("heap a waiting task, {crowd} of them");
        if options.wants(&name) {
            let [owned, inline] = ask(&mut report, &name, "bytes", &Waiting(crowd));
            report.target(&format!("{name}, oneflight"), AtMost(120.0), owned);
            report.target(&format!("{name}, oneflight, inline"), AtMost(120.0), inline);
        }
        let name = format!("heap a u64 key in flight, {crowd} of them");
        if options.wants(&name) {
            let [owned, inline] = ask(&mut report, &name, "bytes", &InFlight(crowd));
            report.target(&format!("{name}, oneflight"), AtMost(200.0), owned);
            report.target(&format!("{name}, oneflight, inline"), AtMost(200.0), inline);
        }
    }
    let size = "size of a call around 1,026 bytes of work";
    if options.wants(size) {
        let [owned, inline] = ask(&mut report, size, "bytes", &Size);
        report.target(&format!("{size}, oneflight"), AtMost(256.0), owned);
        report.target(&format!("{size}, oneflight, inline"), AtMost(1_150.0), inline);
    }
    report.finish()
}

/// Allocations a call of one task, once the contender has seen all keys: tables that grow to the size of the load are no
/// cost of a call.
struct Allocations;

impl Question for Allocations {
    fn answer<C: Coalesces>(&self, make: impl Fn() -> C) -> f64 {
        let (contender, keys) = (make(), load::numbers(CALLS, 1));
        let call_all = || {
            for key in &keys {
                let mut call = core::pin::pin!(contender.call(key, || async { black_box(1) }));
                while poll(call.as_mut()).is_pending() {}
            }
        };
        call_all();
        measure(call_all).count_total as f64 / keys.len() as f64
    }
}

/// Bytes for each task that waits for one key. Where the caller keeps its future is not what is measured.
struct Waiting(usize);

impl Question for Waiting {
    fn answer<C: Coalesces>(&self, make: impl Fn() -> C) -> f64 {
        let (contender, key) = (make(), 7);
        let leader = [start(&contender, &key)];
        let heap = heap_of(self.0, || start(&contender, &key));
        drop(leader);
        heap / self.0 as f64
    }
}

/// Bytes for each key that is in flight, led by one task, the empty contender included. The work is eight bytes.
struct InFlight(usize);

impl Question for InFlight {
    fn answer<C: Coalesces>(&self, make: impl Fn() -> C) -> f64 {
        let keys = load::numbers(self.0, 1);
        let mut contender = None;
        let base = measure(|| contender = Some(make())).bytes_current as f64;
        let contender = contender.expect("it was made just now");
        let mut keys = keys.iter();
        let heap = heap_of(self.0, || start(&contender, keys.next().expect("there is one for each")));
        (base + heap) / self.0 as f64
    }
}

/// A call that has been polled once. Its place on the heap is not counted, but what it has allocated is.
fn start<'a>(contender: &'a impl Coalesces, key: &'a u64) -> Pin<Box<dyn Future<Output = u64> + 'a>> {
    let call = contender.call(key, || {
        let value = black_box(1_u64);
        poll_fn(move |_| if black_box(value) == 0 { Poll::Ready(value) } else { Poll::Pending })
    });
    let mut boxed: Option<Pin<Box<dyn Future<Output = u64> + 'a>>> = None;
    opt_out(|| boxed = Some(Box::pin(call)));
    let mut call = boxed.expect("it was made just now");
    assert!(poll(call.as_mut()).is_pending());
    call
}

/// The bytes that are in use more after so many calls of `start` than before.
fn heap_of<T>(count: usize, mut start: impl FnMut() -> T) -> f64 {
    let mut started = Vec::with_capacity(count);
    let used = measure(|| started.extend((0..count).map(|_| start())));
    used.bytes_current as f64
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Bytes of the future that a call is, around work that is a future of 1,026 bytes.
struct Size;

impl Question for Size {
    fn answer<C: Coalesces>(&self, make: impl Fn() -> C) -> f64 {
        let contender = make();
        let call = contender.call(&7, large_work);
        size_of_val(&call) as f64
    }
}

async fn large_work() -> u64 {
    let mut block = black_box([1_u8; 1_024]);
    let mut waited = false;
    poll_fn(|_| {
        block[0] += 1;
        if core::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    u64::from(black_box(block)[0])
}
