//! The database: a real SQLite file, and the query that a product page costs.

use core::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use oneflight_cache::BoxError;
use rusqlite::{Connection, OpenFlags, Result};
use tempfile::TempDir;

use crate::catalogue;
use crate::report;

// The product, how dear it is among its kind, and the six of its kind that cost about the same. For both, every product
// of the category must be found and looked at: too much for every visitor, and just what one puts a cache before.
const PRODUCT_PAGE: &str = "
    WITH this AS MATERIALIZED (
        SELECT * FROM product WHERE id = ?1
    ),
    rank AS MATERIALIZED (
        SELECT avg(product.price_cents < this.price_cents) AS dearer_than
        FROM this JOIN product ON product.category = this.category
    )
    SELECT product.name, product.price_cents, product.category, product.description, product.stars, rank.dearer_than
    FROM rank, this JOIN product ON product.category = this.category
    ORDER BY product.id <> this.id, abs(product.price_cents - this.price_cents), product.id
    LIMIT 7";

/// A catalogue on disk, with a connection for each thread.
pub(crate) struct Database {
    // Every thread may hold one at the same time, so nobody ever waits for a connection and SQLite runs as many queries
    // at once as there are threads in need of one.
    idle: Mutex<Vec<Connection>>,
    path: PathBuf,
    // Dropped last, when no connection is open any more: removes the file.
    _directory: TempDir,
}

impl Database {
    /// Writes the catalogue and opens `connections` connections to it.
    pub(crate) fn create(seed: u64, connections: usize) -> core::result::Result<Self, BoxError> {
        let directory = TempDir::with_prefix("stampede-").map_err(|error| {
            io::Error::new(error.kind(), format!("cannot make a temporary directory for the database: {error}"))
        })?;
        let path = directory.path().join("catalogue.sqlite");
        let progress = report::progress("catalogue", catalogue::PRODUCTS as usize);
        catalogue::fill(&mut Connection::open(&path)?, seed, || progress.inc(1))?;
        progress.finish();

        let database = Self { idle: Mutex::default(), path, _directory: directory };
        for _ in 0..connections {
            database.give_back(database.open()?);
        }
        Ok(database)
    }

    /// Queries what the page of a product shows, and renders it: some ten milliseconds of work.
    pub(crate) fn product_page(&self, product: u32) -> Result<String> {
        let connection = match self.take() {
            Some(connection) => connection,
            None => self.open()?,
        };
        let page = render(&connection, product);
        self.give_back(connection);
        page
    }

    fn open(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        // All connections read the file from the same memory; it is small enough.
        connection.pragma_update(None, "mmap_size", 1 << 30)?;
        // Read the schema and compile the statement now, so that no visitor pays for it.
        connection.prepare_cached(PRODUCT_PAGE)?;
        Ok(connection)
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().expect("nothing panics under this lock").pop()
    }

    fn give_back(&self, connection: Connection) {
        self.idle.lock().expect("nothing panics under this lock").push(connection);
    }
}

fn render(connection: &Connection, product: u32) -> Result<String> {
    let mut select = connection.prepare_cached(PRODUCT_PAGE)?;
    let mut rows = select.query([product])?;
    let mut html = String::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get("name")?;
        let euros = row.get::<_, f64>("price_cents")? / 100.0;
        if html.is_empty() {
            let category: String = row.get("category")?;
            let description: String = row.get("description")?;
            let stars: f64 = row.get("stars")?;
            let dearer_than = row.get::<_, f64>("dearer_than")? * 100.0;
            let _ = write!(
                html,
                "<h1>{name}</h1><p>{description}</p><p>{euros:.2} EUR, {stars} stars, dearer than {dearer_than:.0} % \
                 of {category}</p><h2>Others look at</h2>",
            );
        } else {
            let _ = write!(html, "<p>{name}, {euros:.2} EUR</p>");
        }
    }
    if html.is_empty() {
        return Err(rusqlite::Error::QueryReturnedNoRows);
    }
    Ok(html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_its_product_first_and_six_others_and_the_file_goes_with_the_database() {
        let database = Database::create(1, 1).expect("creates");
        let page = database.product_page(4_321).expect("product exists");
        let select = "SELECT name FROM product WHERE id = 4321";
        let connection = database.take().expect("the connection is back");
        let name: String = connection.query_row(select, [], |row| row.get(0)).expect("runs");
        database.give_back(connection);
        assert!(page.starts_with(&format!("<h1>{name}</h1>")), "{page}");
        assert_eq!(page.matches("EUR").count(), 7, "{page}");

        let unknown = database.product_page(catalogue::PRODUCTS + 1);
        assert!(matches!(unknown, Err(rusqlite::Error::QueryReturnedNoRows)));

        let path = database.path.clone();
        assert!(path.exists());
        drop(database);
        assert!(!path.exists());
    }
}
