//! The cache as a subject.
use crate::counts::Counts;
use crate::options::Options;
pub(crate) struct Caches;
impl Caches {
    pub(crate) fn new(_: &Options) -> Self {
        Self
    }
    pub(crate) fn round(&self, _: u64) -> Counts {
        Counts::default()
    }
}
