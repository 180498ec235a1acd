//! What a store with leases must do: one suite for all of them.

#[path = "../support/model/mod.rs"]
mod model;

#[test]
fn smoke() {
    use oneflight_cache::test_util::ManualClock;
    let store = model::ModelStore::<Vec<u8>>::new(ManualClock::new());
    let _ = oneflight_cache::Cache::<String, Vec<u8>>::builder().store(store.clone()).build();
    let _ = oneflight_cache::Cache::<String, Vec<u8>>::builder().store(store).build_blocking();
}
