//! A thread-based HTTP server whose handlers share the work of rendering a page.
//!
//! A pool of threads takes requests from one [`tiny_http`] listener. Rendering a page is slow, so the handlers go
//! through a [`SyncGroup`]: of all the requests for one page that are in progress at a time, the first renders it
//! and the others wait for that very page. The one line that does so is in `App::page`.
//!
//! | request | answer |
//! |---|---|
//! | `GET /users/<number>` | 200 and the page; 500 if rendering it panicked for this client |
//! | `GET /stats` | 200 and two lines: how many pages were asked for, how many were rendered |
//! | any other path | 404 |
//! | any method but `GET` and `HEAD` | 405: reads may be shared, writes must not be |
//!
//! A client that waits for somebody else's page holds a handler meanwhile, so the number of handlers bounds how many
//! clients are served at once.
//!
//! # Examples
//!
//! ```
//! use threaded_server::{Page, Server};
//!
//! let server = Server::start("127.0.0.1:0", 8, |path| Page::from(format!("<h1>{path}</h1>")))?;
//! println!("listening on http://{}", server.addr());
//! server.stop();
//! # Ok::<(), std::io::Error>(())
//! ```

use std::fmt;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use oneflight::SyncGroup;
use tiny_http::{HTTPVersion, Header, Method, Request, Response};

/// A rendered page: cheap to clone, so that any number of clients can be sent the same one.
pub type Page = Arc<str>;

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
    /// `render` makes the page of a path. It must depend on nothing but that path: the page goes to every client
    /// that asked for it.
    ///
    /// # Errors
    ///
    /// If the address cannot be listened on, or a thread cannot be started.
    pub fn start<R>(addr: impl ToSocketAddrs, handlers: usize, render: R) -> io::Result<Self>
    where
        R: Fn(&str) -> Page + Send + Sync + 'static,
    {
        let listener = TcpListener::bind(addr)?;
        let addr = listener.local_addr()?;
        let listener = tiny_http::Server::from_listener(listener, None).map_err(io::Error::other)?;
        let app = Arc::new(App {
            pages: SyncGroup::new(),
            render: Box::new(render),
            asked: AtomicU64::new(0),
            rendered: AtomicU64::new(0),
        });

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

    /// The pages being rendered right now, by path.
    #[must_use]
    pub fn pages(&self) -> &SyncGroup<String, Page> {
        &self.app.pages
    }

    /// Answers what has been received, then ends the handlers and closes the port.
    ///
    /// # Blocking
    ///
    /// Waits for the pages that are being rendered.
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
    pages: SyncGroup<String, Page>,
    render: Box<dyn Fn(&str) -> Page + Send + Sync>,
    asked: AtomicU64,
    rendered: AtomicU64,
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
                Ok(page) => html(200, &page),
                Err(_) => html(500, "this page could not be rendered\n"),
            },
            Method::Get | Method::Head => html(404, "no such page\n"),
            _ => html(405, "only GET and HEAD\n").with_header(header("Allow: GET, HEAD")),
        };
        send(request, response)
    }

    /// The page of a path: rendered by the first client that asks, shared by those that ask meanwhile.
    fn page(&self, path: &str) -> Page {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.pages.do_call(path, || {
            self.rendered.fetch_add(1, Ordering::Relaxed);
            (self.render)(path)
        })
    }

    fn stats(&self) -> String {
        let (asked, rendered) = (self.asked.load(Ordering::Relaxed), self.rendered.load(Ordering::Relaxed));
        format!("asked {asked}\nrendered {rendered}\n")
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
