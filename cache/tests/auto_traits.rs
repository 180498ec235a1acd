//! Auto traits of the public types, in both directions.

use oneflight_cache::{
    BoxError, Builder, Cache, Call, CallMany, Collector, Entry, Error, Fallback, Fetched, LoadTimes, Source, Stats,
    Time, blocking,
};
use std::cell::Cell;
use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::Rc;

/// `yes`: it compiles because the type has the trait. `no`: it compiles because the type has not; if it had, there would be
/// two ways to choose `IfItHas`'s parameter, and the compiler would ask which.
macro_rules! has {
    (yes $trait:ident $type:ty) => {
        const _: fn() = || {
            fn has<T: $trait + ?Sized>() {}
            has::<$type>();
        };
    };
    (no $trait:ident $type:ty) => {
        const _: fn() = || {
            trait IfItHas<A> {
                fn ambiguous() {}
            }
            impl<T: ?Sized> IfItHas<()> for T {}
            struct Has;
            impl<T: $trait + ?Sized> IfItHas<Has> for T {}
            let _ = <$type as IfItHas<_>>::ambiguous;
        };
    };
}

macro_rules! table {
    ($($send:tt $sync:tt $unpin:tt $unwind:tt $ref_unwind:tt $type:ty;)+) => { $(
        has!($send Send $type);
        has!($sync Sync $type);
        has!($unpin Unpin $type);
        has!($unwind UnwindSafe $type);
        has!($ref_unwind RefUnwindSafe $type);
    )+ };
}

/// `Send` and not `Sync`.
type OneThreadAtATime = Cell<u32>;
/// Neither.
type OneThread = Rc<u32>;

table! {
//  Send
//  |   Sync
//  |   |   Unpin
//  |   |   |   UnwindSafe
//  |   |   |   |   RefUnwindSafe
//  |   |   |   |   |
    yes yes yes yes yes Cache<u32, u32>;
    // A value is handed to several callers at once, so it must be `Sync` for the cache to be even `Send`.
    no  no  yes yes yes Cache<u32, OneThreadAtATime>;
    no  no  yes yes yes Cache<u32, OneThread>;
    no  no  yes yes yes Cache<OneThread, u32>;
    no  no  yes yes yes Cache<u32, u32, OneThreadAtATime>;
    yes yes yes yes yes Collector<u32, u32>;
    no  no  yes yes yes Collector<u32, OneThreadAtATime>;
    yes yes yes yes yes Call<'static, Cache<u32, u32>, u32>;
    yes yes yes yes yes CallMany<'static, Cache<u32, u32>, &'static [u32]>;

    yes yes yes yes yes blocking::Cache<u32, u32>;
    no  no  yes yes yes blocking::Cache<u32, OneThreadAtATime>;
    no  no  yes yes yes blocking::Cache<OneThread, u32>;
    yes yes yes yes yes blocking::Collector<u32, u32>;
    no  no  yes yes yes blocking::Collector<u32, OneThreadAtATime>;
    yes yes yes yes yes Call<'static, blocking::Cache<u32, u32>, u32>;

    yes yes yes no  no  Builder<u32, u32, BoxError>;
    yes yes yes no  no  Error<u32>;
    yes yes yes yes yes Fetched<u32>;
    yes no  yes yes no  Fetched<OneThreadAtATime>;
    no  no  yes yes yes Fetched<OneThread>;
    yes yes yes yes yes Entry<u32>;
    yes yes yes yes yes Fallback;
    yes yes yes yes yes LoadTimes;
    yes yes yes yes yes Source;
    yes yes yes yes yes Stats;
    yes yes yes yes yes Time;
}

#[test]
fn a_cache_may_be_used_after_a_panic_was_caught() {
    let users: blocking::Cache<u32, u32> = Cache::builder().build_blocking();
    catch_unwind(|| users.get_or_load(&7, || panic!("on purpose"))).unwrap_err();
    assert_eq!(*users.get_or_load(&7, || Ok(1)).unwrap(), 1);
}
