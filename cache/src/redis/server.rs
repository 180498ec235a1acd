//! How the server is asked: in the generation that holds, and by scripts that it may not know yet.

use super::error::Error;
use super::generation::{Generation, Look};
use super::link::Link;
use super::name::Name;
use super::reply;
use super::script::{self, Script};
use crate::nonce::nonce;
use redis::{Pipeline, Value};
use std::sync::Arc;

/// A way to the server, and the generation of the keys there, which any process may end.
///
/// A read takes for granted what was found in the last second, say. Whatever else is asked for goes together with another
/// look, and is asked for again in the right generation if it was the wrong one. What it did in the wrong one nobody sees, and
/// it expires.
///
/// So nothing is written in a generation that was over before the write began. It may end in between: then the write was
/// before the clearing, and whoever loads in the next generation begins to after both.
pub(crate) struct Server<L> {
    pub(crate) link: L,
    pub(crate) generation: Arc<Generation>,
    /// What the generation is called.
    name: String,
}

/// When a request looks at the generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookWhen {
    /// If the last look was too long ago.
    Over,
    /// Then, and always if it costs no round trip of its own.
    Cheap,
    Always,
    /// If nobody ever has, or what was found may not hold any more.
    InDoubt,
}

impl<L: Link> Server<L> {
    pub(crate) fn new(link: L, name: String, generation: Generation) -> Self {
        Self { link, generation: Arc::new(generation), name }
    }

    /// Sends what `commands` are for each of the names, in the generation that holds, and returns the replies to them.
    pub(crate) async fn send(
        &self,
        names: &mut [Name],
        when: LookWhen,
        commands: impl Fn(&mut Pipeline, &Name) + Send + Sync,
    ) -> Result<Vec<Value>, Error> {
        let look = self.generation.look();
        let apart = self.link.is_cluster();
        let is_due = match when {
            _ if self.generation.is_fixed() => false,
            LookWhen::Over => look.over,
            LookWhen::Cheap => look.over || !apart,
            LookWhen::Always => true,
            LookWhen::InDoubt => look.is_in_doubt,
        };
        let (number, looks) = match look.number {
            Some(number) if !is_due || !apart => (number, is_due),
            _ => (self.find(look).await?, false),
        };
        let mut pipeline = Pipeline::new();
        if looks {
            pipeline.cmd("GET").arg(&self.name);
        }
        append(&mut pipeline, names, number, &commands);
        let mut replies = self.link.send(pipeline).await?;
        if !looks {
            return Ok(replies);
        }
        if replies.is_empty() {
            return Err(Error::odd("too few replies"));
        }
        let found = self.or_make(reply::generation(Some(replies.remove(0)))?).await?;
        self.generation.found(look, found);
        if found == number {
            return Ok(replies);
        }
        let mut pipeline = Pipeline::new();
        append(&mut pipeline, names, found, &commands);
        self.link.send(pipeline).await
    }

    /// Looks at the generation, if it is time to.
    pub(crate) async fn look(&self) -> Result<(), Error> {
        let look = self.generation.look();
        if look.over || look.number.is_none() {
            self.find(look).await?;
        }
        Ok(())
    }

    async fn find(&self, look: Look) -> Result<u64, Error> {
        let mut pipeline = Pipeline::new();
        pipeline.cmd("GET").arg(&self.name);
        let found = reply::generation(self.link.send(pipeline).await?.into_iter().next())?;
        let found = self.or_make(found).await?;
        self.generation.found(look, found);
        Ok(found)
    }

    /// What was found. If there was none, as the server is new, was emptied or needed the room: one that has never been, so
    /// that what is left of former ones never comes back.
    async fn or_make(&self, found: Option<u64>) -> Result<u64, Error> {
        if let Some(found) = found {
            return Ok(found);
        }
        let number = reply::written(nonce());
        let mut pipeline = Pipeline::new();
        pipeline.cmd("SET").arg(&self.name).arg(&number[..]).arg("NX").cmd("GET").arg(&self.name);
        let mut replies = self.link.send(pipeline).await?.into_iter();
        reply::good(replies.next())?;
        reply::generation(replies.next())?.ok_or_else(|| Error::odd("a generation that does not stay"))
    }

    /// Begins another generation.
    pub(crate) async fn next_generation(&self) -> Result<(), Error> {
        let number = reply::written(nonce());
        // Before, as it may be carried out though no answer comes; and after, for those who looked in between. What comes next
        // looks for itself, as others may clear at the same time, and the last one counts.
        self.generation.doubt();
        let keys = [self.name.clone().into_bytes()];
        let mut pipeline = Pipeline::new();
        script::CLEAR.by_hash(&mut pipeline, &keys, &[&number]);
        let sent = self.link.send(pipeline).await;
        let done = match sent {
            Ok(replies) => self.known(replies.into_iter().next(), &script::CLEAR, &keys, &[&number]).await,
            Err(error) => Err(error),
        };
        self.generation.forget();
        done.map(drop)
    }

    /// Runs a script for a key.
    pub(crate) async fn run(
        &self,
        script: &Script,
        name: &mut Name,
        when: LookWhen,
        arguments: &[&[u8]],
    ) -> Result<Value, Error> {
        let commands = |pipeline: &mut Pipeline, name: &Name| script.by_hash(pipeline, &script.keys(name), arguments);
        let replies = self.send(std::slice::from_mut(name), when, commands).await?;
        self.known(replies.into_iter().next(), script, &script.keys(name), arguments).await
    }

    /// By the script in full: for what is asked for rarely, so that the server hardly knows it, and should be done though no
    /// answer comes any more.
    pub(crate) async fn run_in_full(
        &self,
        script: &Script,
        name: &mut Name,
        when: LookWhen,
        arguments: &[&[u8]],
    ) -> Result<Value, Error> {
        let commands = |pipeline: &mut Pipeline, name: &Name| script.in_full(pipeline, &script.keys(name), arguments);
        let replies = self.send(std::slice::from_mut(name), when, commands).await?;
        reply::good(replies.into_iter().next())
    }

    /// The reply, or, if the server does not know the script yet, that to the script in full. Nothing was done then, so nothing
    /// is done twice.
    async fn known(
        &self,
        reply: Option<Value>,
        script: &Script,
        keys: &[Vec<u8>],
        arguments: &[&[u8]],
    ) -> Result<Value, Error> {
        match reply {
            Some(Value::ServerError(error)) if script::is_unknown(&error) => {
                let mut pipeline = Pipeline::new();
                script.in_full(&mut pipeline, keys, arguments);
                reply::good(self.link.send(pipeline).await?.into_iter().next())
            }
            reply => reply::good(reply),
        }
    }
}

fn append(pipeline: &mut Pipeline, names: &mut [Name], generation: u64, commands: &impl Fn(&mut Pipeline, &Name)) {
    for name in names {
        name.set_generation(generation);
        commands(pipeline, name);
    }
}
