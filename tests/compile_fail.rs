//! G2: what must not compile does not, and what is meant for one thread does.
//!
//! That a group of `Rc` or `Cell` cannot be shared is in `auto_traits.rs`: it has to be asked in a way in which the compiler
//! does not answer with the names of all inner types. What is expected here is the same from Rust 1.85 on.

#![cfg(feature = "std")]

#[test]
fn what_must_not_be_shared_sent_or_kept_is_refused_by_the_compiler() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile_pass/*.rs");
    cases.compile_fail("tests/compile_fail/*.rs");
}
