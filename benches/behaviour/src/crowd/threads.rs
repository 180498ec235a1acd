//! Threads, each of which makes one call.

use super::asleep::wait_until_others_sleep;
use super::{Crowd, End};
use crate::clock::{Begun, Labour, Plan, sleep_until_next_tick, value};
use crate::peers::{Job, OnThreads, Peer, Side};
use crate::values::{Failure, Got, Value};
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

pub(crate) struct Threads {
    peer: &'static dyn Peer<OnThreads>,
    members: Vec<Member>,
}

enum Member {
    In(JoinHandle<Got>),
    Out(End),
}

impl Threads {
    pub(crate) const fn new(peer: &'static dyn Peer<OnThreads>) -> Self {
        Self { peer, members: Vec::new() }
    }
}

impl Crowd for Threads {
    type Side = OnThreads;

    fn peer(&self) -> &'static dyn Peer<OnThreads> {
        self.peer
    }

    fn work(&self, plan: Plan) -> Labour {
        plan.thread()
    }

    fn nested_work(&self, key: u64) -> Labour {
        let peer = self.peer;
        Box::new(move || {
            let _begun = Begun::new();
            sleep_until_next_tick();
            match peer.call(key, value(0).thread())() {
                Got::Value(number) => Ok(Value(number)),
                Got::Failure | Got::Refused => Err(Failure),
            }
        })
    }

    fn many_work(&self, given: &'static Mutex<Vec<Vec<u64>>>) -> <OnThreads as Side>::ManyWork {
        Box::new(move |keys| {
            given.lock().expect("nothing panics here").push(keys.clone());
            sleep_until_next_tick();
            keys
        })
    }

    fn join(&mut self, call: Job) -> usize {
        self.members.push(Member::In(thread::spawn(call)));
        self.settle();
        self.members.len() - 1
    }

    fn settle(&mut self) {
        wait_until_others_sleep();
        for member in &mut self.members {
            let is_out = matches!(member, Member::In(handle) if handle.is_finished());
            if is_out && let Member::In(handle) = std::mem::replace(member, Member::Out(End::Panicked)) {
                *member = Member::Out(handle.join().map_or(End::Panicked, End::Got));
            }
        }
    }

    fn is_over(&self) -> bool {
        self.members.iter().all(|member| matches!(member, Member::Out(_)))
    }

    fn end(&self, number: usize) -> Option<End> {
        match &self.members[number] {
            Member::In(_) => None,
            Member::Out(end) => Some(*end),
        }
    }
}
