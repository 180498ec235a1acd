#!/usr/bin/env bash
# Do the Redis stores and leases work over TLS, where both sides show a certificate: of threads, of tasks on smol and on
# tokio, and of a cluster?
#
#     bash ci/tls.sh
#
# Makes an authority and certificates that last a day, starts a server and a cluster of one server, and runs the program
# in ci/tls. Installs what is missing. REDIS_SERVER names another server, which must have been built with TLS.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_cargo
need_apt openssl openssl
need_redis
need_apt redis-cli redis-tools

manifest=ci/tls/Cargo.toml
build=$target/tls
directory=$(mktemp -d)
servers=()

end() {
    ((${#servers[@]} == 0)) || kill "${servers[@]}" 2>/dev/null || true
    wait
    rm -rf "$directory"
}
trap end EXIT
trap 'exit 130' INT TERM HUP

# signed NAME [OPTIONS]: a key and a certificate of the authority.
signed() {
    local name=$1
    shift
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$name" -keyout "$directory/$name.key" -out "$directory/$name.csr" "$@"
    openssl x509 -req -days 1 -in "$directory/$name.csr" -CA "$directory/ca.crt" -CAkey "$directory/ca.key" \
        -CAcreateserial -copy_extensions copy -out "$directory/$name.crt"
}

certificates() {
    {
        openssl req -x509 -days 1 -newkey rsa:2048 -nodes -subj "/CN=oneflight tests" \
            -addext keyUsage=critical,keyCertSign -keyout "$directory/ca.key" -out "$directory/ca.crt"
        signed server -addext subjectAltName=DNS:localhost,IP:127.0.0.1
        # Without an extension it would be of version 1, which rustls does not take.
        signed client -addext extendedKeyUsage=clientAuth
    } >"$directory/openssl.log" 2>&1 || {
        cat "$directory/openssl.log"
        die "openssl failed"
    }
}

cli() {
    redis-cli --tls --cacert "$directory/ca.crt" --cert "$directory/client.crt" --key "$directory/client.key" "$@"
}

# serve PORT [OPTIONS]: a server that answers at that port, only to those who show a certificate unless the options say otherwise.
serve() {
    local port=$1 try
    shift
    "${REDIS_SERVER:-redis-server}" --port 0 --tls-port "$port" --bind 127.0.0.1 --save "" --appendonly no \
        --dir "$directory" --tls-cert-file "$directory/server.crt" --tls-key-file "$directory/server.key" \
        --tls-ca-cert-file "$directory/ca.crt" "$@" >"$directory/$port.log" 2>&1 &
    servers+=($!)
    for ((try = 0; try < 200; try++)); do
        if [[ $(cli -p "$port" PING 2>/dev/null) == PONG ]]; then
            return
        fi
        sleep 0.05
    done
    cat "$directory/$port.log"
    die "no server at port $port"
}

serve_cluster() {
    local try
    serve "$cluster_port" --tls-auth-clients no --cluster-enabled yes --tls-cluster yes --cluster-announce-ip 127.0.0.1 \
        --cluster-port "$bus_port"
    [[ $(cli -p "$cluster_port" CLUSTER ADDSLOTSRANGE 0 16383) == OK ]] || die "a cluster needs Redis 7 or Valkey"
    for ((try = 0; try < 200; try++)); do
        if cli -p "$cluster_port" CLUSTER INFO | grep -q cluster_state:ok; then
            return
        fi
        sleep 0.05
    done
    cat "$directory/$cluster_port.log"
    die "the cluster does not come up"
}

build() { CARGO_TARGET_DIR=$build cargo build --quiet --release --locked --manifest-path "$manifest"; }

lint() {
    need_component fmt rustfmt
    need_component clippy clippy
    cargo fmt --manifest-path "$manifest" --check
    CARGO_TARGET_DIR=$build cargo clippy --quiet --release --locked --manifest-path "$manifest" -- -D warnings
}

run() {
    local output
    output=$(SSL_CERT_FILE=$directory/ca.crt timeout 120 "$build/release/oneflight-tls" \
        "rediss://localhost:$port" "rediss://127.0.0.1:$cluster_port" "$directory") || {
        printf '%s\n' "$output"
        die "it does not work over TLS"
    }
    printf '%s\n' "$output"
    [[ ${output##*$'\n'} =~ ^[1-9][0-9]*\ passed,\ 0\ failed$ ]] || die "the program ended before it had run everything"
}

step "format and clippy" lint
step "build" build
step "certificates" certificates
# All outside of the range from which the system takes the ports of outgoing connections.
port=$((20000 + RANDOM % 4000))
cluster_port=$((port + 4000))
bus_port=$((port + 8000))
serve "$port"
serve_cluster
step "run" run
