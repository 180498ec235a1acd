//! `axum_server`: serves slowly rendered pages on port 8080 until it is interrupted.
//!
//! ```text
//! cargo run --release -p axum_server
//! curl -Z --parallel-immediate --parallel-max 64 'http://127.0.0.1:8080/users/1001?[1-64]'
//! curl http://127.0.0.1:8080/stats
//! ```
//!
//! The last command says `loads 1`, `joins 63`.

use std::time::Duration;

use axum_server::{Page, app};
use oneflight_cache::{BoxError, Cache};
use tokio::net::TcpListener;
use tokio::time::sleep;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let pages = Cache::builder()
        .ttl(Duration::from_secs(10))
        .stale_if_error(Duration::from_secs(600))
        .spawner(|refresh| drop(tokio::spawn(refresh)))
        .build();
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app(pages, render)).await
}

/// Stands in for a template over a slow query.
async fn render(id: u64) -> Result<Page, BoxError> {
    sleep(Duration::from_millis(500)).await;
    Ok(Page::from(format!("<h1>User {id}</h1>\n")))
}
