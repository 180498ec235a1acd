//! Runs random mixes of every operation of oneflight on several executors and threads at once, for as long as one likes, and
//! checks what must always hold. Ends with status 1 and the seed, the round and the key at the first promise that is broken.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod alarm;
mod bomb;
mod breach;
mod cache;
mod counts;
mod executors;
mod groups;
mod manner;
mod memory;
mod options;
mod outstanding;
mod things;
mod watchdog;

use crate::counts::Counts;
use crate::memory::Memory;
use crate::options::{Options, Subject, USAGE};
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    quiet_panics();
    match options.subject {
        Subject::Groups => {
            let groups = groups::Groups::new(&options);
            rounds(&options, |seed| groups.round(seed));
        }
        Subject::Cache => {
            let caches = cache::Caches::new(&options);
            breach::place(options.seed, options.round);
            cache::crowd();
            rounds(&options, |seed| caches.round(seed));
        }
    }
    ExitCode::SUCCESS
}

/// Runs rounds until the time is up.
fn rounds(options: &Options, run: impl Fn(u64) -> Counts) {
    let minute = Duration::from_secs(60);
    let begun = Instant::now();
    let mut memory = Memory::new(options.time);
    let mut counts = Counts::default();
    let mut round = options.round;
    let mut told = begun;
    // One round at least, however short the time is.
    while round == options.round || begun.elapsed() < options.time {
        breach::place(options.seed, round);
        // Neighbouring seeds and rounds must not be alike.
        let seed = fastrand::Rng::with_seed(options.seed ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15)).u64(..);
        counts.merge(&run(seed));
        memory.look();
        round += 1;
        if told.elapsed() >= minute {
            told = Instant::now();
            let minutes = begun.elapsed().as_secs() / 60;
            println!("{minutes} min: {} rounds, {} calls; {}", round - options.round, counts.sum(), memory.tell());
        }
    }
    println!("\nseed {}, rounds {} to {}, {:.1?}: clean", options.seed, options.round, round - 1, begun.elapsed());
    println!("resident memory: {}\n", memory.tell());
    print!("{counts}");
}

/// The panics that are wanted have no message: those of the library that tell of a refused call are not to be seen either.
fn quiet_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<String>().map(String::as_str);
        if !text.is_some_and(|text| text.starts_with("oneflight: cannot wait for the flight")) {
            usual(info);
        }
    }));
}
