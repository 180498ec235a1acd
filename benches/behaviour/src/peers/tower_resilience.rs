//! tower-resilience-coalesce: a layer over a service whose requests bring their work along.

use super::{Call, OnTasks, Peer};
use crate::clock::{Work, WorkFuture};
use crate::values::{Failure, Got, Key, Value};
use std::sync::Mutex;
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};
use tower_resilience_coalesce::{CoalesceError, CoalesceLayer};

/// The work is in a lock since the service is shared, and with it what it might hold.
struct Request(Key, Mutex<Work>);

pub(super) struct Tasks(BoxCloneSyncService<Request, Value, CoalesceError<Failure>>);

pub(super) fn tasks() -> Tasks {
    let run = |Request(_, work)| -> WorkFuture { work.into_inner().expect("nothing panics under the lock")() };
    let layer = CoalesceLayer::new(|request: &Request| request.0.clone());
    Tasks(BoxCloneSyncService::new(layer.layer(service_fn(run))))
}

impl Peer<OnTasks> for Tasks {
    fn call(&'static self, key: u64, work: Work) -> Call {
        let service = self.0.clone();
        Box::pin(async move {
            match service.oneshot(Request(Key::new(key), Mutex::new(work))).await {
                Ok(Value(number)) => Got::Value(number),
                Err(CoalesceError::Service(Failure)) => Got::Failure,
                Err(_) => Got::Refused,
            }
        })
    }
}
