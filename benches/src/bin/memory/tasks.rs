//! Allocations, heap and sizes of `AsyncGroup` and of what it is beside.

use allocation_counter::{measure, opt_out};
use core::future::{Future, poll_fn};
use core::hint::black_box;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use oneflight_benches::contender::tasks::{Coalesces, Visitor, everybody, floors, on_tokio_only, text_on_tokio_only};
use oneflight_benches::contender::{Key, Kind};
use oneflight_benches::executor::tokio_on_this_thread;
use oneflight_benches::load;
use oneflight_benches::options::Options;
use oneflight_benches::report::Bound::AtMost;
use oneflight_benches::report::Report;
use oneflight_benches::rounds::Spread;

/// Calls that an average is taken over.
const CALLS: usize = 1_000;

/// Keys in flight, and tasks that wait: of these numbers, the one with the worst result counts.
const CROWDS: [usize; 2] = [1_000, 100_000];

/// What is found out about a contender.
trait Question {
    fn answer<C: Coalesces<u64>>(&self, make: fn() -> C) -> f64;
}

/// Asks everybody.
struct Answers<'r, A> {
    report: &'r mut Report,
    workload: &'r str,
    unit: &'r str,
    question: A,
}

impl<A: Question> Visitor<u64> for Answers<'_, A> {
    fn visit<C: Coalesces<u64>>(&mut self, name: &'static str, kind: Kind, make: fn() -> C) {
        let answer = Spread::exact(self.question.answer(make));
        self.report.figure(self.workload, name, kind, self.unit, answer);
    }
}

/// Asks everybody, and holds the answers of `do_call` and of `do_call_inline` against what is asked of each of them.
fn ask(report: &mut Report, workload: &str, unit: &str, question: impl Question, most: [f64; 2]) {
    let mut all = Answers { report, workload, unit, question };
    everybody::<u64>(&mut all);
    floors::<u64>(&mut all);
    let cells = report.rows().last().expect("it was noted just now").cells[..2].to_vec();
    for (cell, most) in cells.iter().zip(most) {
        report.target(&format!("{workload}, {}", cell.who.name), AtMost(most), cell.spread);
    }
    report.least(workload);
}

/// Runs those that are wanted.
pub(crate) fn run(options: &Options, report: &mut Report) {
    report.begin("memory of tasks");
    let wanted = |report: &Report, name: &str| options.wants(report.part(), name);
    let name = "alone, u64 key: allocations";
    if wanted(report, name) {
        ask(report, name, "a call", Allocations, [2.0, 0.0]);
    }
    let name = "alone, 16-byte string key, on tokio: allocations";
    if wanted(report, name) {
        let mut all = AllocationsOnTokio { report, workload: name };
        everybody::<str>(&mut all);
        on_tokio_only::<str>(&mut all);
        text_on_tokio_only(&mut all);
        report.least(name);
    }
    for crowd in CROWDS.map(|crowd| options.size(crowd)) {
        let name = format!("heap a waiting task, {crowd} of them");
        if wanted(report, &name) {
            ask(report, &name, "bytes", Waiting(crowd), [120.0, 120.0]);
        }
        let name = format!("heap a u64 key in flight, {crowd} of them");
        if wanted(report, &name) {
            ask(report, &name, "bytes", InFlight(crowd), [200.0, 200.0]);
        }
    }
    let name = "size of a call around 1,026 bytes of work";
    if wanted(report, name) {
        ask(report, name, "bytes", Size, [256.0, 1_150.0]);
    }
}

/// Allocations a call of one task, once the contender has seen all keys: tables that grow to the size of the load are no
/// cost of a call.
struct Allocations;

impl Question for Allocations {
    fn answer<C: Coalesces<u64>>(&self, make: fn() -> C) -> f64 {
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

/// The same with all who can be asked on tokio, whose tasks are on this thread too.
struct AllocationsOnTokio<'r> {
    report: &'r mut Report,
    workload: &'r str,
}

impl Visitor<str> for AllocationsOnTokio<'_> {
    fn visit<C: Coalesces<str>>(&mut self, name: &'static str, kind: Kind, make: fn() -> C) {
        let (contender, keys, tokio) = (make(), str::many(CALLS, 1), tokio_on_this_thread());
        let call_all = || {
            tokio.block_on(async {
                for key in &keys {
                    black_box(contender.call(key, || async { black_box(1) }).await);
                }
            });
        };
        call_all();
        let allocations = measure(call_all).count_total as f64 / keys.len() as f64;
        self.report.figure(self.workload, name, kind, "a call", Spread::exact(allocations));
    }
}

/// Bytes for each task that waits for one key. Where the caller keeps its future is not what is measured.
struct Waiting(usize);

impl Question for Waiting {
    fn answer<C: Coalesces<u64>>(&self, make: fn() -> C) -> f64 {
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
    fn answer<C: Coalesces<u64>>(&self, make: fn() -> C) -> f64 {
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
fn start<'a>(contender: &'a impl Coalesces<u64>, key: &'a u64) -> Pin<Box<dyn Future<Output = u64> + 'a>> {
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
    fn answer<C: Coalesces<u64>>(&self, make: fn() -> C) -> f64 {
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
