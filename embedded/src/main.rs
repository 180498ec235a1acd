//! Runs `AsyncGroup` where there is no `std`: on a Cortex-M4, with interrupts as its second context.
//!
//! Each scenario prints one line. The first that fails ends the program with an error.

#![no_std]
#![no_main]
// The controls leave most of the scenarios out.
#![cfg_attr(any(feature = "fail", feature = "hang"), allow(dead_code))]

extern crate alloc;

mod executor;
mod interrupt;
mod scenarios;
mod sensor;

use core::cell::Cell;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};
use cortex_m::Peripherals;
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use critical_section::Mutex;
use embedded_alloc::LlffHeap;
use scenarios::SCENARIOS;

#[global_allocator]
static HEAP: LlffHeap = LlffHeap::empty();

static RUNNING: Mutex<Cell<&str>> = Mutex::new(Cell::new("start"));
static PASSED: AtomicUsize = AtomicUsize::new(0);

#[entry]
fn main() -> ! {
    #[expect(unsafe_code, reason = "there is no safe way to give the heap its memory")]
    // SAFETY: the first statement of the program, which runs once; nothing else names this memory.
    unsafe {
        embedded_alloc::init!(HEAP, 64 * 1024);
    }
    let mut syst = Peripherals::take().expect("taken once").SYST;
    interrupt::start(&mut syst);

    for (name, scenario) in SCENARIOS {
        critical_section::with(|section| RUNNING.borrow(section).set(name));
        let before = HEAP.used();
        scenario();
        assert_eq!(HEAP.used(), before, "bytes of heap in use after the scenario, and before it");
        PASSED.fetch_add(1, Ordering::Relaxed);
        hprintln!("ok {name}");
    }

    hprintln!("{} passed, 0 failed", SCENARIOS.len());
    exit(debug::EXIT_SUCCESS)
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    cortex_m::interrupt::disable();
    let name = critical_section::with(|section| RUNNING.borrow(section).get());
    let passed = PASSED.load(Ordering::Relaxed);
    hprintln!("FAILED {name}: {info}");
    hprintln!("{passed} passed, 1 failed, {} skipped", SCENARIOS.len() - passed - 1);
    exit(debug::EXIT_FAILURE)
}

fn exit(status: debug::ExitStatus) -> ! {
    debug::exit(status);
    // A debugger may let the program go on.
    loop {
        cortex_m::asm::wfi();
    }
}
