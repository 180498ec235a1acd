//! Renewing: by the holder, too late, by another.

use crate::bench::{Bench, HOUR, SHORT};

pub(crate) fn a_renewed_lease_lasts_longer<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    loop {
        let begun = bench.now();
        first.lead_for(SHORT);
        let is_renewed = first.renew(HOUR);
        // Otherwise it may have come too late.
        if bench.now().since(begun) < SHORT {
            assert!(is_renewed);
            break;
        }
        first.release();
    }
    bench.pass(SHORT * 2);
    assert!(second.is_kept_out());
    assert!(first.renew(HOUR));
}

pub(crate) fn a_renewal_may_shorten_a_lease<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.lead();
    assert!(first.renew(SHORT));
    bench.pass(SHORT * 2);
    second.lead();
}

pub(crate) fn a_lease_that_has_run_out_is_lost<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    assert!(!first.renew(HOUR), "there never was one");
    first.lead_for(SHORT);
    bench.pass(SHORT * 2);
    assert!(!first.renew(HOUR));
    second.lead();
    assert!(!first.renew(HOUR));
}

pub(crate) fn anothers_lease_is_left_alone<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.lead();
    assert!(!second.renew(SHORT));
    bench.pass(SHORT * 2);
    assert!(second.is_kept_out(), "it is as long as it was");
    assert!(first.renew(HOUR));
}

pub(crate) fn what_was_written_has_no_lease<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let writes: [fn(&crate::bench::Caller<'_, B>); 3] = [|it| it.remove(), |it| it.put(b"b"), |it| it.bench.flush()];
    for write in writes {
        bench.flush();
        first.lead();
        write(&second);
        assert!(!first.renew(HOUR));
    }
}
