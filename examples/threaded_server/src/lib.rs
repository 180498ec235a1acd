//! A thread-based HTTP server whose handlers share a cache of rendered pages.
//!
//! A pool of threads takes requests from one [`tiny_http`] listener. Rendering a page is slow, so the handlers go
//! through a [`Cache`]: of all the requests for a page that is not there, the first renders it and the others wait for that
//! very page; and what has been rendered is served again as long as the cache's settings say. The one line that does so is in
//! `App::page`.
//!
//! | request | answer |
//! |---|---|
//! | `GET /users/<number>` | 200 and the page; 500 if rendering it panicked for this client |
//! | `GET /stats` | 200 and what the cache has done so far, a line for each count |
//! | any other path | 404 |
//! | any method but `GET` and `HEAD` | 405: reads may be shared, writes must not be |
//!
//! A client that waits for somebody else's page holds a handler meanwhile, so the number of handlers bounds how many
//! clients are served at once.
//!
//! # Examples
//!
//! ```
//! use oneflight_cache::blocking::Cache;
//! use threaded_server::{Page, Server};
//!
//! let pages = Cache::builder().build_blocking();
//! let server = Server::start("127.0.0.1:0", 8, pages, |path| Page::from(format!("<h1>{path}</h1>")))?;
//! println!("listening on http://{}", server.addr());
//! server.stop();
//! # Ok::<(), std::io::Error>(())
//! ```

use std::convert::Infallible;
use std::fmt;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use oneflight_cache::blocking::Cache;
use tiny_http::{HTTPVersion, Header, Method, Request, Response};

/// A rendered page: cheap to clone, so that any number of clients can be sent the same one.
pub type Page = Arc<str>;

/// Rendered pages by path. Rendering does not fail, except by a panic.
pub type Pages = Cache<String, Page, Infallible>;

/// How long a server that stops waits for refreshes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server. Dropping it stops it, exactly as [`stop`](Server::stop) does.
pub struct Server {
    addr: SocketAddr,
    app: Arc<App>,
    listener: Arc<tiny_http::Server>,
    handlers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Listens on `addr` (port 0: any free one) and serves it from `handlers` threads, at least one.
    ///
    /// `render` makes the page of a path, for `pages` to keep. It must depend on nothing but that path: the page goes to every
    /// client that asks for it.
    ///
    /// # Errors
    ///
    /// If the address cannot be listened on, or a thread cannot be started.
    pub fn start<R>(addr: impl ToSocketAddrs, handlers: usize, pages: Pages, render: R) -> io::Result<Self>
    where
        R: Fn(&str) -> Page + Send + Sync + 'static,
    {
        let listener = TcpListener::bind(addr)?;
        let addr = listener.local_addr()?;
        let listener = tiny_http::Server::from_listener(listener, None).map_err(io::Error::other)?;
        let app = Arc::new(App { pages, render: Arc::new(render) });

        // Made before its handlers, so that those already started are stopped if a later one cannot be.
        let mut server = Server { addr, app, listener: Arc::new(listener), handlers: Vec::new() };
        for number in 0..handlers.max(1) {
            let (app, listener) = (Arc::clone(&server.app), Arc::clone(&server.listener));
            let handler =
                thread::Builder::new().name(format!("handler-{number}")).spawn(move || app.serve(&listener))?;
            server.handlers.push(handler);
        }
        Ok(server)
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Answers what has been received, then ends the handlers, closes the cache and closes the port.
    ///
    /// # Blocking
    ///
    /// Waits for the pages that are being rendered; a minute at most for those that no client waits for.
    pub fn stop(self) {
        drop(self);
    }

    /// Serves until the process ends.
    ///
    /// # Blocking
    ///
    /// Returns only if the listener breaks down, when no connection can be accepted any more.
    pub fn wait(mut self) {
        for handler in self.handlers.drain(..) {
            let _ = handler.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Queued behind the requests that are already there; each handler passes it on.
        self.listener.unblock();
        for handler in self.handlers.drain(..) {
            // A handler catches what rendering throws; if it died all the same, there is nobody left to tell.
            let _ = handler.join();
        }
        self.app.pages.close(PATIENCE);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("addr", &self.addr)
            .field("handlers", &self.handlers.len())
            .finish_non_exhaustive()
    }
}

/// What the handlers share.
struct App {
    pages: Pages,
    render: Arc<dyn Fn(&str) -> Page + Send + Sync>,
}

impl App {
    /// One handler: takes requests until the listener says that it is over.
    fn serve(&self, listener: &tiny_http::Server) {
        while let Ok(request) = listener.recv() {
            if let Err(error) = self.answer(request) {
                eprintln!("answer not sent: {error}");
            }
        }
        // Stopped, or nothing can be accepted any more: the other handlers must hear of it too.
        listener.unblock();
    }

    fn answer(&self, request: Request) -> io::Result<()> {
        let path = request.url().split('?').next().unwrap_or_default();
        let response = match request.method() {
            Method::Get | Method::Head if path == "/stats" => html(200, &self.stats()),
            // A page that panics must cost its client a page, not the server a handler.
            Method::Get | Method::Head if is_page(path) => match catch_unwind(AssertUnwindSafe(|| self.page(path))) {
                Ok(Some(page)) => html(200, &page),
                _ => html(500, "this page could not be rendered\n"),
            },
            Method::Get | Method::Head => html(404, "no such page\n"),
            _ => html(405, "only GET and HEAD\n").with_header(header("Allow: GET, HEAD")),
        };
        send(request, response)
    }

    /// The page of a path: rendered by the first client that asks, shared by those that ask meanwhile, and kept for later ones.
    fn page(&self, path: &str) -> Option<Page> {
        let (render, path_to_render) = (Arc::clone(&self.render), path.to_owned());
        let page = self.pages.get_or_load(path, move || Ok(render(&path_to_render))).ok()?;
        Some(page.into_value())
    }

    fn stats(&self) -> String {
        let stats = self.pages.stats();
        let counts = [
            ("hits", stats.hits),
            ("early", stats.early),
            ("stale", stats.stale),
            ("loads", stats.loads),
            ("joins", stats.joins),
            ("load_errors", stats.load_errors),
        ];
        counts.map(|(name, count)| format!("{name} {count}\n")).concat()
    }
}

/// Whether the path is `/users/<number>`.
fn is_page(path: &str) -> bool {
    path.strip_prefix("/users/").is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
}

fn html(status: u16, body: &str) -> Response<io::Cursor<Vec<u8>>> {
    Response::from_string(body).with_status_code(status).with_header(header("Content-Type: text/html; charset=utf-8"))
}

/// Answers in the words of HTTP 1.0, which tell the client to close the connection.
///
/// tiny_http gives a thread of its own to each connection that stays open; when many are opened at once, it leaves some
/// unread until others close.
fn send(request: Request, response: Response<io::Cursor<Vec<u8>>>) -> io::Result<()> {
    let headers_only = *request.method() == Method::Head;
    let mut writer = request.into_writer();
    response.raw_print(&mut writer, HTTPVersion(1, 0), &[], headers_only, None)?;
    writer.flush()
}

fn header(line: &str) -> Header {
    line.parse().expect("a header line written in this file")
}
