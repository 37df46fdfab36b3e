//! The property of the HTTP exchanges of `counters --serve`.
use core::time::Duration;
use std::sync::Arc;

use dotnet_ipc_sans_io::http::allowed_hosts::AllowedHosts;
use dotnet_ipc_sans_io::http::http_exchange::{HttpExchange, Step};

/// Checks an HTTP connection of a server. The first eight bytes are the sizes of pieces, and the others are what a client
/// sends. The answers are the same however the bytes are received and sent, their number is limited by that of the bytes,
/// and the connection ends after its input, in a limited number of steps.
pub fn http_exchange(bytes: &[u8]) {
    let (sizes, input) = bytes.split_at(bytes.len().min(8));
    let whole = answers(input, &[]);
    assert_eq!(answers(input, sizes), whole, "in pieces of {sizes:?}");
    assert_eq!(answers(input, &[0]), whole, "byte by byte");
    assert!(whole.is_empty() || whole.starts_with("HTTP/1.1 "));
    // The shortest request has 16 bytes, and the longest answer fewer than 512.
    assert!(whole.len() <= 512 * (1 + input.len() / 16), "{} bytes for {}", whole.len(), input.len());
}

/// Returns what the server sends for an input that ends. The pieces that are received and sent have these sizes, from 0
/// for a byte on.
fn answers(mut input: &[u8], sizes: &[u8]) -> String {
    const NOW: Duration = Duration::from_secs(9);
    let hosts = AllowedHosts::new(["a".to_owned()]);
    let mut exchange = HttpExchange::new(Arc::new(hosts), NOW);
    let mut sent = Vec::new();
    let (mut steps, length) = (0, input.len());
    let size = |step: usize| match sizes {
        [] => usize::MAX,
        sizes => 1 + usize::from(sizes[step % sizes.len()]),
    };
    loop {
        steps += 1;
        assert!(steps <= 8 + 4 * (length + sent.len()), "no end");
        match exchange.step(NOW) {
            Step::Receive(space) => {
                assert!(!space.is_empty(), "no space");
                let n = space.len().min(input.len()).min(size(steps));
                let (received, rest) = input.split_at(n);
                space[..n].copy_from_slice(received);
                input = rest;
                exchange.received(n, NOW);
            }
            Step::Provide => exchange.provide("b 1\n".into()),
            Step::Send([head, body]) => {
                let bytes = [head, body].concat();
                assert!(!bytes.is_empty(), "nothing to send");
                let n = bytes.len().min(size(steps));
                sent.extend_from_slice(&bytes[..n]);
                exchange.sent(n, NOW);
            }
            Step::EndSending => {}
            Step::Close => return String::from_utf8(sent).expect("text"),
        }
    }
}
