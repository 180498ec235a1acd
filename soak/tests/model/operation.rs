//! What is done to a group, step by step.

use proptest::prelude::*;

/// How a caller calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `do_call`.
    Plain,
    /// `call(..).run`.
    Owned,
    /// `call(..).detach().run`.
    Detached,
    /// `call(..).run_inline`.
    Inline,
}

/// A call with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) key: u8,
    pub(crate) form: Form,
    pub(crate) fails: bool,
    pub(crate) attempts: Option<u32>,
    pub(crate) shares: bool,
    /// Whether its work is ready at once.
    pub(crate) instant: bool,
    /// Whether its work wakes in each of its polls.
    pub(crate) restless: bool,
}

/// How a work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Value,
    Panic,
}

/// One step. Numbers choose among those that are there, round and round.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Call(Call),
    /// Both keys in one call, the second one first or not.
    CallMany(bool),
    /// Polls a caller, woken or not. Who is not polled is parked.
    Poll(u8),
    /// Polls a caller that was woken.
    PollWoken(u8),
    Drop(u8),
    /// A work can end: it wakes.
    End(u8, End),
    /// A work wakes, and can do nothing.
    Wake(u8),
    TryLead(u8),
    Land(u8),
    DropLead(u8),
    Forget(u8),
    ForgetUnshared(u8),
    ForgetAll,
}

/// How many keys there are.
pub(crate) const KEYS: u8 = 2;

fn call() -> impl Strategy<Value = Call> {
    let form = prop_oneof![
        2 => Just(Form::Plain),
        3 => Just(Form::Owned),
        2 => Just(Form::Detached),
        2 => Just(Form::Inline),
    ];
    let rarely = || prop::bool::weighted(0.25);
    let attempts = prop_oneof![3 => Just(None), 1 => (1_u32..4).prop_map(Some)];
    let all = (0..KEYS, form, rarely(), attempts, rarely(), prop::bool::weighted(0.1), rarely());
    all.prop_map(|(key, form, fails, attempts, unshared, instant, restless)| match form {
        // It has the group's defaults.
        Form::Plain => Call { key, form, fails: false, attempts: None, shares: true, instant, restless },
        _ => Call { key, form, fails, attempts, shares: !unshared, instant, restless },
    })
}

/// A sequence of steps.
pub(crate) fn sequence() -> impl Strategy<Value = Vec<Operation>> {
    let end = prop_oneof![2 => Just(End::Value), 1 => Just(End::Panic)];
    let one = prop_oneof![
        8 => call().prop_map(Operation::Call),
        2 => any::<bool>().prop_map(Operation::CallMany),
        6 => any::<u8>().prop_map(Operation::Poll),
        8 => any::<u8>().prop_map(Operation::PollWoken),
        5 => any::<u8>().prop_map(Operation::Drop),
        6 => (any::<u8>(), end).prop_map(|(work, end)| Operation::End(work, end)),
        2 => any::<u8>().prop_map(Operation::Wake),
        2 => (0..KEYS).prop_map(Operation::TryLead),
        1 => any::<u8>().prop_map(Operation::Land),
        1 => any::<u8>().prop_map(Operation::DropLead),
        2 => (0..KEYS).prop_map(Operation::Forget),
        1 => (0..KEYS).prop_map(Operation::ForgetUnshared),
        1 => Just(Operation::ForgetAll),
    ];
    prop::collection::vec(one, 1..60)
}
