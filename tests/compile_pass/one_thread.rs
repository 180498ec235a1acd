//! One thread may use values, keys and works that no other may touch.

use oneflight::SyncGroup;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

fn main() {
    let shared: SyncGroup<Rc<str>, Rc<Cell<u32>>> = SyncGroup::new();
    let key: Rc<str> = Rc::from("k");
    let local = Rc::new(Cell::new(7));
    // The closure borrows, and could not be sent.
    let value = shared.do_call(&key, || Rc::clone(&local));
    value.set(8);
    assert_eq!(local.get(), 8);

    let log = RefCell::new(Vec::new());
    let lead = shared.try_lead(&key).expect("no flight is on");
    let outcome = shared.call(&Rc::from("l")).share_if(|value| value.get() > 0).run(|| {
        log.borrow_mut().push("work");
        Rc::clone(&local)
    });
    assert!(outcome.is_ok());
    assert_eq!(lead.land(local).value.get(), 8);

    let errors: SyncGroup<u32, Result<Rc<str>, std::sync::Arc<RefCell<String>>>> = SyncGroup::new();
    let error = errors.try_do_call(&1, || Err(RefCell::new("no".to_owned())));
    assert!(error.is_err_and(|error| *error.borrow() == "no"));
    assert_eq!(log.into_inner(), ["work"]);
}
