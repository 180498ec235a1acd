//! The server over loopback.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum_server::{Page, app};
use oneflight_cache::Cache;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::yield_now;

const CLIENTS: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_clients_of_a_page_share_one_load_and_later_ones_get_it_from_the_cache() {
    let (gate, loads) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let pages = Cache::builder().spawner(|refresh| drop(tokio::spawn(refresh))).build();
    let server = {
        let (gate, loads) = (Arc::clone(&gate), Arc::clone(&loads));
        app(pages.clone(), move |id| {
            let (gate, number) = (Arc::clone(&gate), loads.fetch_add(1, Ordering::SeqCst) + 1);
            async move {
                gate.acquire().await?.forget();
                Ok(Page::from(format!("user {id}, load {number}")))
            }
        })
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, server).await });

    let crowd: Vec<_> = (0..CLIENTS).map(|_| tokio::spawn(get(addr, "/users/7"))).collect();
    while pages.waiters(&7) < CLIENTS - 1 {
        yield_now().await;
    }
    gate.add_permits(1);
    for client in crowd {
        assert_eq!(client.await.expect("an answer"), "user 7, load 1");
    }
    assert_eq!(get(addr, "/users/7").await, "user 7, load 1");
    assert_eq!(loads.load(Ordering::SeqCst), 1);
    assert_eq!(get(addr, "/stats").await, "hits 1\nloads 1\njoins 63\n");
}

/// Asks for a page on a connection of its own, and returns the body of the answer, which must be a good one.
async fn get(addr: SocketAddr, path: &'static str) -> String {
    let mut stream = TcpStream::connect(addr).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
}
