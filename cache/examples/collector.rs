//! A page of posts, each of which asks for its author by itself: how many statements is that?
//!
//! ```text
//! cargo run -p oneflight-cache --example collector
//! ```

use oneflight_cache::{BoxError, Cache, Collector, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A database that counts what it is asked.
#[derive(Default)]
struct Database {
    statements: AtomicUsize,
}

impl Database {
    /// `select name from users where id in (..)`
    async fn names(&self, ids: &[u32]) -> Result<Vec<String>, BoxError> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        smol::Timer::after(Duration::from_millis(5)).await;
        Ok(ids.iter().map(|id| format!("user {id}")).collect())
    }
}

/// What shows one post knows nothing of the others.
async fn post(number: u32, authors: &Collector<u32, String>) -> Result<String, Error<BoxError>> {
    let author = authors.load(&(number % 30)).await?;
    Ok(format!("post {number} by {}", *author))
}

fn main() -> Result<(), Error<BoxError>> {
    let database = Arc::new(Database::default());
    let cache = Cache::builder().ttl(Duration::from_secs(60)).build();
    let authors = cache.collector({
        let database = Arc::clone(&database);
        move |ids: Vec<u32>| {
            let database = Arc::clone(&database);
            async move { database.names(&ids).await }
        }
    });
    let authors = authors.window(Duration::from_millis(2)).max_batch(50).build();

    for page in 1..=2 {
        let before = database.statements.load(Ordering::Relaxed);
        smol::block_on(async {
            let posts = smol::LocalExecutor::new();
            let shown: Vec<_> = (0..100).map(|number| posts.spawn(post(number, &authors))).collect();
            posts
                .run(async {
                    for shown in shown {
                        shown.await?;
                    }
                    Ok(())
                })
                .await
        })?;
        let statements = database.statements.load(Ordering::Relaxed) - before;
        println!("page {page}: 100 posts by 30 authors, {statements} statements");
    }
    Ok(())
}
