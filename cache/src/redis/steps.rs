//! What is asked of the server about keys, in bytes: one way for threads and tasks.

use super::error::Error;
use super::generation::Generation;
use super::header::Keep;
use super::key::CacheKey;
use super::link::Link;
use super::name::{CHANNELS, Name, Names};
use super::push::PushedMessage;
use super::reply::{self, Raw, Taken};
use super::script;
use super::server::{LookWhen, Server};
use crate::fill::{Epoch, Token, Version};
use crate::lease::{Publication, Push, Told, ToldWritten, Watch, Written};
use crate::many::together::{all, together};
use crate::nonce::nonce;
use crate::time::millis;
use redis::Pipeline;
use std::sync::Arc;
use std::time::Duration;

/// All that a store or a lease does on a server.
pub(crate) struct Steps<L> {
    server: Server<L>,
    names: Names,
}

/// What is known to be there when a lease is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    Version(Version),
    /// It does not matter what is there.
    Whatever,
}

/// What is pushed to other processes. It is a hint, so nobody has to hear it.
struct Hint {
    channel: String,
    message: String,
    is_cluster: bool,
}

/// So many keys are read together, at most.
const TOGETHER: usize = 1_000;

impl<L: Link> Steps<L> {
    pub(crate) fn new(link: L, names: Names, generation: Generation) -> Self {
        let server = Server::new(link, names.generation(), generation);
        Self { server, names }
    }

    pub(crate) fn name(&self, key: &(impl CacheKey + ?Sized)) -> Name {
        self.names.name(key)
    }

    fn channels(&self) -> impl Iterator<Item = String> {
        (0..CHANNELS).map(|number| self.names.channel(number))
    }

    pub(crate) fn link(&self) -> &L {
        &self.server.link
    }

    pub(crate) async fn read(&self, name: &mut Name) -> Result<Option<Raw>, Error> {
        let replies = self.server.send(std::slice::from_mut(name), LookWhen::Over, read_command).await?;
        let mut replies = replies.into_iter();
        reply::raw(replies.next(), replies.next())
    }

    /// What there is of each; an error instead if there is nothing else.
    pub(crate) async fn read_many(&self, names: &mut [Name]) -> Result<Vec<Result<Option<Raw>, Error>>, Error> {
        let found =
            if self.server.link.is_cluster() { self.read_each(names).await? } else { self.read_together(names).await };
        match found.first() {
            Some(Err(error)) if found.iter().all(Result::is_err) => Err(error.clone()),
            _ => Ok(found),
        }
    }

    async fn read_together(&self, names: &mut [Name]) -> Vec<Result<Option<Raw>, Error>> {
        let count = names.len();
        let mut found = Vec::with_capacity(count);
        for some in names.chunks_mut(TOGETHER) {
            match self.server.send(some, LookWhen::Over, read_command).await {
                Ok(replies) => {
                    let mut replies = replies.into_iter();
                    found.extend(some.iter().map(|_| reply::raw(replies.next(), replies.next())));
                }
                Err(error) => {
                    // It is not asked for the rest.
                    found.resize_with(count, || Err(error.clone()));
                    break;
                }
            }
        }
        found
    }

    /// What is sent to a cluster together must be in one slot. So each is sent by itself, and all at the same time: a server that
    /// hangs costs its own keys alone, and their callers no more than if it was one.
    async fn read_each(&self, names: &mut [Name]) -> Result<Vec<Result<Option<Raw>, Error>>, Error> {
        if !names.is_empty() {
            // Otherwise each of them would.
            self.server.look().await?;
        }
        let reads = names.iter_mut().map(|name| self.read(name)).collect();
        Ok(together(TOGETHER, reads).await)
    }

    pub(crate) async fn acquire(
        &self,
        name: &mut Name,
        token: Token,
        lease: Duration,
        epoch_life: Duration,
        seen: Seen,
    ) -> Result<Taken, Error> {
        let version;
        let written = match seen {
            Seen::Nothing => b"".as_slice(),
            Seen::Whatever => b"*",
            Seen::Version(seen) => {
                version = seen.to_le_bytes();
                &version
            }
        };
        let (lease, life) = (lasting(lease), lasting(epoch_life));
        let (token, epoch) = (reply::written(token), reply::written(nonce()));
        let arguments = [&token, lease.as_bytes(), life.as_bytes(), &epoch, written];
        reply::taken(self.server.run(&script::ACQUIRE, name, LookWhen::Cheap, &arguments).await?, seen)
    }

    pub(crate) async fn publish(
        &self,
        name: &mut Name,
        token: Token,
        epoch: Epoch,
        value: &[u8],
        keep: Keep,
    ) -> Result<Publication, Error> {
        let (token, epoch, keep) = (reply::written(token), reply::written(epoch), kept(keep));
        let hint = self.hint(b'r', name);
        let arguments = [&token, epoch.as_slice(), value, keep.as_bytes(), hint.channel(), hint.message()];
        let done = reply::publication(self.server.run(&script::PUBLISH, name, LookWhen::Cheap, &arguments).await?)?;
        if matches!(done, Publication::Stored | Publication::Late) {
            self.push(&hint);
        }
        Ok(done)
    }

    /// With `epoch_life` the epoch is kept for as long too.
    pub(crate) async fn renew(
        &self,
        name: &mut Name,
        token: Token,
        lease: Duration,
        epoch_life: Option<Duration>,
    ) -> Result<bool, Error> {
        let (token, lease, life) = (reply::written(token), lasting(lease), epoch_life.map(lasting).unwrap_or_default());
        let arguments = [token.as_slice(), lease.as_bytes(), life.as_bytes()];
        reply::yes(&self.server.run(&script::RENEW, name, LookWhen::InDoubt, &arguments).await?)
    }

    /// Whether it was this token's.
    pub(crate) async fn release(&self, name: &mut Name, token: Token) -> Result<bool, Error> {
        let token = reply::written(token);
        let hint = self.hint(b'r', name);
        let arguments = [&token, hint.channel(), hint.message()];
        let released =
            reply::yes(&self.server.run_in_full(&script::RELEASE, name, LookWhen::InDoubt, &arguments).await?)?;
        if released {
            self.push(&hint);
        }
        Ok(released)
    }

    pub(crate) async fn put(&self, name: &mut Name, value: &[u8], keep: Keep) -> Result<(), Error> {
        let (keep, hint) = (kept(keep), self.hint(b'w', name));
        let arguments = [value, keep.as_bytes(), hint.channel(), hint.message()];
        self.server.run(&script::PUT, name, LookWhen::Always, &arguments).await?;
        self.push(&hint);
        Ok(())
    }

    pub(crate) async fn remove(&self, name: &mut Name) -> Result<(), Error> {
        let hint = self.hint(b'w', name);
        self.server.run(&script::INVALIDATE, name, LookWhen::Always, &[hint.channel(), hint.message()]).await?;
        self.push(&hint);
        Ok(())
    }

    /// Begins another generation, and tells everybody on all channels.
    pub(crate) async fn clear(&self) -> Result<(), Error> {
        self.server.next_generation().await?;
        let link = &self.server.link;
        let message = self.message(b'a', 0);
        // Who hears nothing looks for himself before long.
        if link.is_cluster() {
            // The channels are many servers', some of which may hang.
            let hints = self.channels().map(|channel| link.send(published(&channel, &message)));
            drop(all(hints).await);
        } else {
            let mut pipeline = Pipeline::new();
            for channel in self.channels() {
                pipeline.cmd("PUBLISH").arg(channel).arg(&message);
            }
            let _ = link.send(pipeline).await;
        }
        Ok(())
    }

    pub(crate) fn watch(&self, name: &Name, told: Told) -> Box<dyn Watch> {
        let id = name.id();
        let generation = Arc::clone(&self.server.generation);
        let told = move |push| {
            // Perhaps all keys were. If it was just this one, the next read looks once more, at the cost of a few bytes.
            if push == Push::Written {
                generation.doubt();
            }
            told(push);
        };
        self.server.link.pushes().watch(self.names.channel(id % CHANNELS), id, Box::new(told))
    }

    /// What other processes write, told to memory in front of the store.
    pub(crate) fn watch_writes(&self, told: ToldWritten) -> Box<dyn Watch> {
        let generation = Arc::clone(&self.server.generation);
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
        };
        self.server.link.pushes().watch_all(self.channels(), Box::new(told))
    }

    fn hint(&self, what: u8, name: &Name) -> Hint {
        let id = name.id();
        let is_cluster = self.server.link.is_cluster();
        Hint { channel: self.names.channel(id % CHANNELS), message: self.message(what, id), is_cluster }
    }

    fn message(&self, what: u8, id: u64) -> String {
        format!("{}{:016x}{id:016x}", char::from(what), self.server.link.pushes().own())
    }

    /// Pushes what the script could not: in a cluster its channel may be another server's. That one may hang, and the write is
    /// done, so nobody waits for it.
    fn push(&self, hint: &Hint) {
        if hint.is_cluster {
            self.server.link.hint(published(&hint.channel, &hint.message));
        }
    }
}

fn published(channel: &str, message: &str) -> Pipeline {
    let mut pipeline = Pipeline::new();
    pipeline.cmd("SPUBLISH").arg(channel).arg(message);
    pipeline
}

impl Hint {
    /// Where the script is to push it; nowhere if it cannot.
    fn channel(&self) -> &[u8] {
        if self.is_cluster { b"" } else { self.channel.as_bytes() }
    }

    fn message(&self) -> &[u8] {
        self.message.as_bytes()
    }
}

/// The time left first: if the value is replaced in between, it is rather too short than too long.
fn read_command(pipeline: &mut Pipeline, name: &Name) {
    pipeline.cmd("PTTL").arg(name.value()).cmd("GET").arg(name.value());
}

/// At least a millisecond. Ten years at most, as the server refuses what is too long.
fn lasting(duration: Duration) -> String {
    const MOST: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);
    millis(duration.min(MOST)).max(1).to_string()
}

fn kept(keep: Keep) -> String {
    match keep {
        Keep::Not => "0".to_owned(),
        Keep::Millis(millis) => millis.to_string(),
        Keep::ForEver => String::new(),
    }
}
