//! The program: it says where it listens, serves there, and says what is wrong with its arguments.

#[path = "support/http.rs"]
mod http;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_threaded_server"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Ends the program also when the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn it_serves_pages_at_the_address_that_it_prints() {
    let arguments = ["--addr", "127.0.0.1:0", "--handlers", "2", "--render-ms", "0", "--ttl", "600"];
    let mut running = Running(program(&arguments).stdout(Stdio::piped()).spawn().expect("the program runs"));

    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim().strip_prefix("listening on http://").expect("the address").parse().unwrap();

    let page = http::get(addr, "/users/1001").unwrap();
    assert_eq!(page.status, 200);
    assert!(page.body.starts_with("<h1>/users/1001</h1>"), "{}", page.body);
    assert_eq!(http::get(addr, "/users/1001").unwrap(), page);
    let stats = http::get(addr, "/stats").unwrap().body;
    assert_eq!(stats, "hits 1\nearly 0\nstale 0\nloads 1\njoins 0\nload_errors 0\n");
}

#[test]
fn wrong_arguments_are_named_in_the_error() {
    for (arguments, named) in [
        (vec!["--addr", "8080"], "--addr"),
        (vec!["--handlers", "0"], "--handlers"),
        (vec!["--render-ms", "soon"], "--render-ms"),
        (vec!["--ttl", "long"], "--ttl"),
        (vec!["--stale", "soon"], "--stale"),
        (vec!["--port", "80"], "--port"),
    ] {
        let output = program(&arguments).output().expect("the program runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(named) && error.contains("--help"), "{arguments:?}: {error}");
    }
}

#[test]
fn an_address_in_use_is_named_in_the_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let output = program(&["--addr", &addr]).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&addr));
}
