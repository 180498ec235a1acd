//! An axum server whose handlers share a cache of rendered pages.
//!
//! | request | answer |
//! |---|---|
//! | `GET /users/{id}` | the page; 500 and the error if it could not be rendered |
//! | `GET /stats` | what the cache has done so far |

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::get;
use oneflight_cache::{BoxError, Cache};

/// A rendered page: cheap to clone, so that any number of clients can be sent the same one.
pub type Page = Arc<str>;

type Rendering = Pin<Box<dyn Future<Output = Result<Page, BoxError>> + Send>>;

/// What the handlers share.
#[derive(Clone)]
struct App {
    pages: Cache<u64, Page>,
    render: Arc<dyn Fn(u64) -> Rendering + Send + Sync>,
}

/// The server's routes. `render` makes the page of a user, for `pages` to keep.
pub fn app<F>(pages: Cache<u64, Page>, render: impl Fn(u64) -> F + Send + Sync + 'static) -> Router
where
    F: Future<Output = Result<Page, BoxError>> + Send + 'static,
{
    let app = App { pages, render: Arc::new(move |id| Box::pin(render(id))) };
    Router::new().route("/users/{id}", get(user)).route("/stats", get(stats)).with_state(app)
}

async fn user(State(app): State<App>, Path(id): Path<u64>) -> Result<Html<String>, (StatusCode, String)> {
    match app.pages.get_or_load(&id, move || (app.render)(id)).await {
        Ok(page) => Ok(Html(page.to_string())),
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

async fn stats(State(app): State<App>) -> String {
    let stats = app.pages.stats();
    format!("hits {}\nloads {}\njoins {}\n", stats.hits, stats.loads, stats.joins)
}
