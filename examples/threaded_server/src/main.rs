//! `threaded_server`: serves slowly rendered pages from a pool of threads until it is interrupted.
//!
//! ```text
//! cargo run --release -p threaded_server
//! curl -Z --parallel-immediate --parallel-max 64 -H 'Connection: close' 'http://127.0.0.1:8080/users/1001?[1-64]'
//! curl http://127.0.0.1:8080/stats
//! ```
//!
//! The last command says `loads 1`, `joins 63`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Parser;
use oneflight_cache::blocking::Cache;
use threaded_server::{Page, Server};

/// Serves slowly rendered pages from a cache; clients that ask for one page at once share one rendering of it
#[derive(Parser)]
struct Options {
    /// Address to listen on; port 0 takes any free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8080")]
    addr: SocketAddr,

    /// Threads that answer requests: the most clients served at once
    #[arg(long, value_name = "N", default_value = "64")]
    handlers: NonZeroUsize,

    /// Milliseconds that one page takes to render
    #[arg(long, value_name = "MS", default_value = "500")]
    render_ms: u64,

    /// Seconds that a page is fresh
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    ttl: u64,

    /// Seconds that a page is still served after that, while it is rendered anew
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    stale: u64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let slow = Duration::from_millis(options.render_ms);

    let pages = Cache::builder()
        .ttl(Duration::from_secs(options.ttl))
        .stale_while_revalidate(Duration::from_secs(options.stale))
        .build_blocking();

    match Server::start(options.addr, options.handlers.get(), pages, move |path| render(path, slow)) {
        Ok(server) => {
            println!("listening on http://{}", server.addr());
            server.wait();
            eprintln!("error: no connection can be accepted any more");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: cannot serve {}: {error}", options.addr);
            ExitCode::FAILURE
        }
    }
}

/// Stands in for a template over a slow query.
fn render(path: &str, slow: Duration) -> Page {
    thread::sleep(slow);
    Page::from(format!("<h1>{path}</h1>\n<p>rendered in {} ms</p>\n", slow.as_millis()))
}
