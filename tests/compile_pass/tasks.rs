//! Work that its caller runs may borrow, and so may its value, whatever options the call has. Only work that a flight owns
//! lasts for ever.

use oneflight::{AsyncGroup, CallError, OnAbandon};

fn first<'a>(group: &AsyncGroup<u32, &'a str>, text: &'a str) -> Result<&'a str, CallError> {
    let work = || text.split(' ').next().unwrap_or_default();
    let value = smol::block_on(async {
        let plain = group.do_call_inline(&1, async || work()).await;
        let out = group.call(&1).share_if(|word| !word.is_empty()).run_inline(async || work()).await?;
        assert_eq!(plain, out.value);
        let call = group.call_with(&1, || 1).max_attempts(2).on_abandon(OnAbandon::Fail);
        call.run_inline(async || work()).await
    });
    assert_eq!(group.call(&1).run_blocking(work), value);
    value.map(|out| out.value)
}

fn main() {
    let text = "one of many".to_owned();
    for group in [AsyncGroup::new(), AsyncGroup::builder().share_if(|word: &&str| word.len() < 9).build()] {
        assert_eq!(first(&group, &text), Ok("one"));
    }
    let group: AsyncGroup<u32, u32> = AsyncGroup::builder().share_if(|n| *n > 0).build();
    // It is sent, and its value with it.
    let out = smol::spawn(async move { group.call(&1).run(async || 7).await.map(|out| out.value) });
    assert_eq!(smol::block_on(out), Ok(7));
}
