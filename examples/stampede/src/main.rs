//! The stampede demo.
fn main() {}
