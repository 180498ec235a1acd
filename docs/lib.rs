//! Runs the code of the pages as tests: `cargo test -p oneflight-docs`.
//!
//! The pages are about both packages, and neither package contains them, so they are tested here.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(doctest)]
#[doc = include_str!("choosing.md")]
mod choosing {}

#[cfg(doctest)]
#[doc = include_str!("migrating.md")]
mod migrating {}

#[cfg(doctest)]
#[doc = include_str!("../cache/README.md")]
mod readme_of_the_cache {}
