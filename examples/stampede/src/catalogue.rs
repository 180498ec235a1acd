//! Fills a new database with the products of a shop.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rusqlite::{Connection, Result, params};

/// How many products the shop sells; their ids are `1..=PRODUCTS`.
pub(crate) const PRODUCTS: u32 = 50_000;

// There is no index on `category`: nobody missed it while every page came from the cache.
const SCHEMA: &str = "
    CREATE TABLE product (
        id          INTEGER PRIMARY KEY,
        category    TEXT    NOT NULL,
        name        TEXT    NOT NULL,
        description TEXT    NOT NULL,
        price_cents INTEGER NOT NULL,
        stars       REAL    NOT NULL
    );";

const STYLES: [&str; 10] =
    ["Classic", "Compact", "Foldable", "Handmade", "Light", "Modern", "Outdoor", "Quiet", "Rustic", "Sturdy"];
const MATERIALS: [&str; 8] = ["Oak", "Steel", "Linen", "Bamboo", "Glass", "Cork", "Wool", "Copper"];
// Category, things it sells, and what they cost, roughly, in cents.
const CATEGORIES: [(&str, [&str; 4], u32); 12] = [
    ("Bathroom", ["Mirror", "Towel Rack", "Soap Dish", "Stool"], 2_900),
    ("Bedroom", ["Bed Frame", "Nightstand", "Quilt", "Wardrobe"], 18_900),
    ("Camping", ["Tent", "Lantern", "Sleeping Mat", "Stove"], 7_900),
    ("Cycling", ["Pannier", "Bell", "Saddle", "Helmet"], 4_900),
    ("Garden", ["Planter", "Bench", "Trellis", "Watering Can"], 5_900),
    ("Kitchen", ["Kettle", "Chopping Board", "Pan", "Carafe"], 3_900),
    ("Lighting", ["Floor Lamp", "Pendant", "Desk Lamp", "Sconce"], 8_900),
    ("Music", ["Metronome", "Guitar Stand", "Speaker", "Record Shelf"], 11_900),
    ("Office", ["Desk", "Chair", "Drawer Unit", "Pen Tray"], 14_900),
    ("Pets", ["Basket", "Scratching Post", "Bowl", "Carrier"], 3_400),
    ("Storage", ["Crate", "Shelf", "Hook Rail", "Chest"], 6_900),
    ("Travel", ["Suitcase", "Wash Bag", "Daypack", "Neck Pillow"], 9_900),
];
const PHRASES: [&str; 8] = [
    "Made to be used every day.",
    "Ships flat and goes together without tools.",
    "Every piece differs slightly in grain and colour.",
    "Wipes clean with a damp cloth.",
    "Spare parts are kept for ten years.",
    "Designed around a small flat and a large family.",
    "Tested for twenty thousand cycles.",
    "Packed without plastic.",
];

/// Creates the table and its rows; the same seed gives the same rows.
pub(crate) fn fill(connection: &mut Connection, seed: u64, mut on_product: impl FnMut()) -> Result<()> {
    // Large pages, since SQLite takes a lock of the whole process for each page that a query reads, and the queries are
    // meant to run side by side. A file that nobody needs after a crash: no journal, no waiting for the disk.
    connection.execute_batch("PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
    connection.execute_batch(SCHEMA)?;

    let mut random = StdRng::seed_from_u64(seed);
    let transaction = connection.transaction()?;
    let mut insert = transaction.prepare("INSERT INTO product VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for id in 1..=PRODUCTS {
        let (category, things, usual_cents) = pick(&CATEGORIES, &mut random);
        let name =
            format!("{} {} {}", pick(&STYLES, &mut random), pick(&MATERIALS, &mut random), pick(things, &mut random),);
        let description = format!("{} {}", pick(&PHRASES, &mut random), pick(&PHRASES, &mut random));
        // From a quarter to four times the usual price, cheap and dear equally likely.
        let price_cents = (f64::from(*usual_cents) * random.random_range(-2.0_f64..2.0).exp2()) as u32;
        let stars = f64::from(random.random_range(20..=50_u8)) / 10.0;
        insert.execute(params![id, category, name, description, price_cents, stars])?;
        on_product();
    }
    drop(insert);
    transaction.commit()
}

fn pick<'a, T>(choices: &'a [T], random: &mut StdRng) -> &'a T {
    choices.choose(random).expect("the lists above are not empty")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(seed: u64) -> Vec<(String, String, u32)> {
        let mut connection = Connection::open_in_memory().expect("opens");
        fill(&mut connection, seed, || ()).expect("fills");
        let mut select =
            connection.prepare("SELECT category, name, price_cents FROM product ORDER BY id").expect("prepares");
        select
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .expect("runs")
            .collect::<Result<_>>()
            .expect("reads")
    }

    #[test]
    fn the_same_seed_gives_the_same_products_and_another_seed_others() {
        let products = rows(7);
        assert_eq!(products.len(), PRODUCTS as usize);
        assert_eq!(products, rows(7));
        assert_ne!(products, rows(8));
    }
}
