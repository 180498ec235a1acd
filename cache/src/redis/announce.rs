//! What is written by other processes, told to memory in front of the store.

use super::key::CacheKey;
use super::link::Link;
use super::push::PushedMessage;
use super::steps::Steps;
use super::values::Values;
use crate::lease::{ToldWritten, Watch, Written};
use std::sync::Arc;

impl<L: Link> Steps<L> {
    fn watch_writes(&self, told: ToldWritten) -> Box<dyn Watch> {
        let generation = Arc::clone(self.generation());
        let told = move |message| match message {
            PushedMessage::Written(id) => told(Written::Key(id)),
            PushedMessage::AllWritten => {
                generation.forget();
                told(Written::Any);
            }
            PushedMessage::Listening => {
                // It may have been cleared while nobody listened.
                generation.doubt();
                told(Written::Any);
            }
            PushedMessage::Broken | PushedMessage::Released(_) => {}
        };
        self.link().pushes().watch_all(self.channels(), Box::new(told))
    }
}

impl<L: Link, C> Values<L, C> {
    pub(crate) fn watch_writes(&self, told: ToldWritten) -> Box<dyn Watch> {
        self.steps.watch_writes(told)
    }

    pub(crate) fn key_number(&self, key: &(impl CacheKey + ?Sized)) -> u64 {
        self.steps.name(key).id()
    }
}
