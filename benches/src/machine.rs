//! The machine: cores to pin threads to, and whether a thread sleeps.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core_affinity::CoreId;

/// The cores that this process may use.
#[derive(Clone, Debug)]
pub struct Machine {
    cores: Vec<CoreId>,
}

impl Machine {
    /// Asks the operating system. To be called on a thread that is not pinned.
    #[must_use]
    pub fn new() -> Self {
        Self { cores: core_affinity::get_core_ids().unwrap_or_default() }
    }

    /// How many cores there are. One, if the operating system does not tell.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores.len().max(1)
    }

    /// Pins the calling thread to a core: the first for 0, and so on, round and round. Threads that it starts inherit that.
    /// Does nothing where the operating system cannot do it.
    pub fn pin(&self, number: usize) {
        if let Some(&core) = self.cores.get(number % self.cores()) {
            core_affinity::set_for_current(core);
        }
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

/// A thread as the operating system knows it.
#[derive(Clone, Debug)]
pub struct ThreadName(String);

impl ThreadName {
    /// The calling thread's. `None` where there is no `/proc`.
    #[must_use]
    pub fn current() -> Option<Self> {
        let link = std::fs::read_link("/proc/thread-self").ok()?;
        Some(Self(format!("/proc/{}/stat", link.display())))
    }

    /// Whether the thread sleeps, as far as one can tell.
    #[must_use]
    pub fn is_asleep(&self) -> bool {
        // The state is the letter after the name of the program, which stands in brackets and may contain some.
        let stat = std::fs::read_to_string(&self.0).unwrap_or_default();
        stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('S'))
    }
}

/// How often the calling thread lost its core to another thread, without having asked for it. Zero where there is no `/proc`.
#[must_use]
pub fn preemptions() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// What the figures were seen on, in one line.
#[must_use]
pub fn description(machine: &Machine) -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_string())
    });
    let cpu = cpu.unwrap_or_else(|| std::env::consts::ARCH.to_string());
    format!("{cpu}, {} cores, {}", machine.cores(), std::env::consts::OS)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_runs_is_not_asleep_and_one_that_waits_is() {
        let name = ThreadName::current().expect("Linux has /proc");
        assert!(!name.is_asleep());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while !name.is_asleep() {
                    std::thread::yield_now();
                }
            });
        });
    }
}
