//! Runs the stores and leases of `oneflight_cache::redis` over TLS: `bash ci/tls.sh` starts the server and says where it is.
//!
//! The server trusts one authority, which has signed the client's certificate, and the client trusts the same one.

use oneflight_cache::redis::{Bytes, Error, RedisLease, RedisStore, blocking};
use oneflight_cache::{BoxError, Cache, Source, Tiered, blocking as threads};
use redis::{Client, ClientTlsConfig, TlsCertificates};
use std::env;
use std::fs::read;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T = ()> = std::result::Result<T, Failure>;

const LIMIT: Duration = Duration::from_secs(10);

fn main() -> Result {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, cluster_url, directory] = &arguments[..] else {
        return Err("usage: oneflight-tls URL URL_OF_A_CLUSTER DIRECTORY_WITH_CERTIFICATES".into());
    };
    rustls::crypto::ring::default_provider().install_default().expect("there is none yet");
    let file = |name: &str| read(Path::new(directory).join(name));
    let client_tls = || -> Result<ClientTlsConfig> {
        Ok(ClientTlsConfig { client_cert: file("client.crt")?, client_key: file("client.key")? })
    };
    let certificates = TlsCertificates { client_tls: Some(client_tls()?), root_cert: Some(file("ca.crt")?) };
    let client = Client::build_with_tls(url.as_str(), certificates)?;

    play("threads", || on_threads(&client))?;
    play("tasks on smol", || smol::block_on(on_tasks(|name| store(name).with_client(&client), name_of("smol"))))?;
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    play("tasks on tokio", || tokio.block_on(on_tasks(|name| store(name).with_client(&client), name_of("tokio"))))?;
    play("tasks on a cluster, by the system's authorities", || {
        let on_cluster = |name: &str| store(name).connect_cluster([cluster_url.as_str()]);
        tokio.block_on(on_tasks(on_cluster, name_of("cluster")))
    })?;
    play("leases", || smol::block_on(leases(&client)))?;
    let strangers = TlsCertificates { client_tls: Some(client_tls()?), root_cert: Some(file("client.crt")?) };
    let untrusting = Client::build_with_tls(url.as_str(), strangers)?;
    play("a server that nobody vouches for", || refused(&untrusting, "certificate"))?;
    let nobody = TlsCertificates { client_tls: None, root_cert: Some(file("ca.crt")?) };
    let nameless = Client::build_with_tls(url.as_str(), nobody)?;
    play("a client without a certificate", || refused(&nameless, "certificate"))?;
    println!("7 passed, 0 failed");
    Ok(())
}

fn play(name: &str, scenario: impl FnOnce() -> Result) -> Result {
    scenario().map_err(|error| format!("{name}: {error}"))?;
    println!("passed: {name}");
    Ok(())
}

fn check(what: &str, holds: bool) -> Result {
    if holds { Ok(()) } else { Err(format!("not so: {what}").into()) }
}

fn name_of(place: &str) -> String {
    format!("tls-{place}")
}

fn store(name: &str) -> oneflight_cache::redis::Builder<Bytes> {
    RedisStore::builder().prefix(name).response_timeout(LIMIT).connect_timeout(LIMIT)
}

/// One loads, the other finds it on the server, and is told when it is taken back.
fn on_threads(client: &Client) -> Result {
    let cache = || -> threads::Cache<String, String, BoxError, _> {
        let far = store("tls-threads").with_client_blocking(client.clone());
        threads::Cache::builder().store(Tiered::new(100, Duration::from_secs(3_600), far)).build_blocking()
    };
    let (one, other) = (cache(), cache());
    let load =
        |cache: &threads::Cache<_, _, _, _>, value: &'static str| cache.get_or_load("k", move || Ok(value.to_owned()));
    check("the first one loads", load(&one, "first")?.source == Source::Loaded)?;
    let found = load(&other, "second")?;
    check("the other one finds it", *found == "first" && found.source == Source::Hit)?;
    until("what was invalidated is loaded anew", || {
        one.invalidate("k")?;
        sleep(Duration::from_millis(10));
        Ok(*load(&other, "third")? == "third")
    })
}

async fn on_tasks(connect: impl Fn(&str) -> std::result::Result<RedisStore, Error>, name: String) -> Result {
    let cache = || -> std::result::Result<Cache<String, String, BoxError, _>, Error> {
        let far = connect(&name)?;
        Ok(Cache::builder().store(Tiered::new(100, Duration::from_secs(3_600), far)).build())
    };
    let (one, other) = (cache()?, cache()?);
    let first = one.get_or_load("k", async || Ok("first".to_owned())).await?;
    check("the first one loads", first.source == Source::Loaded)?;
    let found = other.get_or_load("k", async || Ok("second".to_owned())).await?;
    check("the other one finds it", *found == "first" && found.source == Source::Hit)?;
    let end = Instant::now() + LIMIT;
    while *other.get_or_load("k", async || Ok("third".to_owned())).await? != "third" {
        check("what was invalidated is loaded anew", Instant::now() < end)?;
        one.invalidate("k").await?;
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

async fn leases(client: &Client) -> Result {
    let builder = || RedisLease::builder().prefix("tls-leases").response_timeout(LIMIT).connect_timeout(LIMIT);
    let tasks = builder().lease_with_client(client)?;
    let threads: blocking::RedisLease = builder().lease_with_client_blocking(client.clone());
    let ttl = Duration::from_secs(60);
    let held = tasks.acquire("k", ttl).await?.ok_or("it is free")?;
    check("a thread does not get what a task has", threads.acquire("k", ttl)?.is_none())?;
    check("it is given back", held.release().await?)?;
    check("then a thread gets it", threads.acquire("k", ttl)?.is_some())
}

/// An error that says why, in time; and the cache loads without the server.
fn refused(client: &Client, why: &str) -> Result {
    let limited =
        || store("tls-nobody").connect_timeout(Duration::from_secs(2)).response_timeout(Duration::from_secs(2));
    let begun = Instant::now();
    let cache: threads::Cache<String, String, BoxError, _> =
        threads::Cache::builder().store(limited().with_client_blocking(client.clone())).build_blocking();
    check("a value is loaded all the same", *cache.get_or_load("k", || Ok("v".to_owned()))? == "v")?;
    let error = cache.put("k", "v".to_owned()).err().ok_or("a thread has stored it")?;
    println!("  a thread is told: {error}");
    let tasks: Cache<String, String, BoxError, _> = Cache::builder().store(limited().with_client(client)?).build();
    let task_error = smol::block_on(tasks.put("k", "v".to_owned())).err().ok_or("a task has stored it")?;
    println!("  a task is told: {task_error}");
    let says_why = |error: String| error.to_lowercase().contains(why);
    check("the error says why", says_why(error.to_string()) && says_why(task_error.to_string()))?;
    check("in time", begun.elapsed() < LIMIT * 2)
}

fn until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result {
    let end = Instant::now() + LIMIT;
    while !holds()? {
        check(what, Instant::now() < end)?;
    }
    Ok(())
}
