//! Whether all other threads of this process sleep, by what Linux says of them. It is how a case knows that nothing more will
//! happen until it does the next thing, without a guess at how long that takes.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// How often each of the other threads was switched away from; `None` unless all of them sleep.
type Sleepers = BTreeMap<String, [String; 2]>;

fn sleepers() -> Option<Sleepers> {
    let own = fs::read_link("/proc/thread-self").ok()?;
    let own = own.file_name()?.to_owned();
    let mut found = Sleepers::new();
    for task in fs::read_dir("/proc/self/task").ok()? {
        let task = task.ok()?;
        if task.file_name() == own {
            continue;
        }
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let field = |name: &str| Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned());
        if !field("State:")?.starts_with('S') {
            return None;
        }
        let switches = [field("voluntary_ctxt_switches:")?, field("nonvoluntary_ctxt_switches:")?];
        found.insert(task.file_name().to_string_lossy().into_owned(), switches);
    }
    Some(found)
}

/// How long a thread may be busy: as good as for ever.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits until all other threads sleep. Two looks that find the same switches mean that nobody ran between them.
pub(crate) fn wait_until_others_sleep() {
    let (start, mut before) = (Instant::now(), None);
    while start.elapsed() < PATIENCE {
        let now = sleepers();
        if now.as_ref().is_some_and(Sleepers::is_empty) || now.is_some() && now == before {
            return;
        }
        before = now;
        thread::sleep(Duration::from_micros(200));
    }
}
