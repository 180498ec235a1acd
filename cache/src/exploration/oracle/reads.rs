//! What a call does that begins.

use super::super::rules::TTL;
use super::{Actor, Checked, Got, Kind, Oracle, Plan, Stored, ensure};
use crate::entry::Source;

impl Oracle {
    fn add(&mut self, kind: Kind) -> usize {
        let (since, at) = (self.written, self.now);
        self.actors.push(Actor { kind, since, at, flight: None, is_over: false });
        self.actors.len() - 1
    }

    /// A `refresh` begins.
    pub(in super::super) fn ask(&mut self) -> (usize, Plan) {
        let actor = self.add(Kind::Ask);
        self.owners.push(actor);
        (actor, Plan::Goes)
    }

    /// A `get_or_load` begins.
    pub(in super::super) fn read(&mut self) -> (usize, Plan) {
        let actor = self.add(Kind::Read { instead: None });
        self.owners.push(actor);
        let plan = self.plan(actor);
        // It is served, refreshes what there is, or has found nothing.
        if matches!((&plan, self.actors[actor].kind), (Plan::Goes, Kind::Read { .. })) {
            self.counts.misses += 1;
        }
        (actor, plan)
    }

    fn plan(&mut self, actor: usize) -> Plan {
        let now = self.now;
        let Some(stored) = self.stored.filter(|stored| now < stored.stale_until) else { return Plan::Goes };
        if now < stored.fresh_until {
            // Half of its life, from its load on.
            let is_early = self.rules.early && (stored.fresh_until - now) * 2 <= stored.fresh_until - stored.loaded_at;
            return self.serve(actor, stored, is_early, Source::Hit, Source::Early);
        }
        if now < stored.fresh_until + self.rules.revalidate() {
            return self.serve(actor, stored, true, Source::Stale, Source::Stale);
        }
        if now < stored.fresh_until + self.rules.if_error() {
            if now < self.not_before {
                return self.serve(actor, stored, false, Source::Stale, Source::Stale);
            }
            self.actors[actor].kind = Kind::Read { instead: Some(stored.page) };
        }
        Plan::Goes
    }

    fn serve(&mut self, actor: usize, stored: Stored, refresh: bool, plain: Source, drawn: Source) -> Plan {
        let page = stored.page;
        let has_leave = refresh && self.refreshing.is_none() && self.not_before <= self.now;
        if !has_leave {
            return self.served(actor, page, plain, false);
        }
        self.counts.refreshes += 1;
        if self.rules.spawner {
            let refresh = self.add(Kind::Refresh { old: page, source: drawn, is_spawned: true });
            *self.owners.last_mut().expect("it has a loader") = refresh;
            self.refreshing = Some(refresh);
            return self.served(actor, page, drawn, true);
        }
        if self.open.is_some() {
            // Somebody is at it.
            return self.served(actor, page, drawn, false);
        }
        self.actors[actor].kind = Kind::Refresh { old: page, source: drawn, is_spawned: false };
        self.refreshing = Some(actor);
        Plan::Goes
    }

    fn served(&mut self, actor: usize, page: super::Page, source: Source, spawned: bool) -> Plan {
        self.actors[actor].is_over = true;
        self.count(source);
        Plan::Served { page, source, spawned }
    }

    pub(super) fn count(&mut self, source: Source) {
        match source {
            Source::Hit => self.counts.hits += 1,
            Source::Early => self.counts.early += 1,
            Source::Stale => self.counts.stale += 1,
            Source::Joined => self.counts.joins += 1,
            Source::Loaded => {}
        }
    }

    /// Whatever the rest of this says: nobody gets what was loaded before a write that had returned when it called, nor what has
    /// expired, but by the settings that allow it.
    pub(super) fn may_get_at_all(&self, actor: usize, got: &Got) -> Checked {
        let Got::Page(page, source) = got else { return Ok(()) };
        let Actor { kind, since, at, .. } = self.actors[actor];
        ensure!(page.made >= since, "{actor} called after write {since}, and got a page of write {}", page.made);
        if matches!(kind, Kind::Refresh { old, .. } if old != *page) {
            // It has loaded that itself.
            return Ok(());
        }
        let life = self.lives.iter().find(|(serial, _)| *serial == page.serial);
        match source {
            Source::Hit | Source::Early => {
                ensure!(life.is_some_and(|(_, until)| at < *until), "{actor} got {page:?} as fresh after its end");
            }
            Source::Stale => {
                let until = life.map(|(_, until)| until + self.rules.revalidate().max(self.rules.if_error()));
                ensure!(until.is_some_and(|until| at < until), "{actor} got {page:?} long after its end");
            }
            _ => ensure!(at + 100 * TTL > self.now, "it took long"),
        }
        Ok(())
    }
}
