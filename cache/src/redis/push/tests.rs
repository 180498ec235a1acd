use super::*;

fn told() -> (Arc<Mutex<Vec<Push>>>, Told) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&log);
    (log, Box::new(move |push| told.lock().push(push)))
}

fn message(what: char, writer: u64, id: u64) -> Vec<u8> {
    format!("{what}{writer:016x}{id:016x}").into_bytes()
}
