//! `Answer`: the bytes that answer a request.
use core::fmt::Write;
use std::sync::Arc;

use super::page::Page;
use super::request::Request;

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) head: String,
    pub(super) body: Arc<str>,
    pub(super) sent: usize,
    pub(super) closes: bool,
}

impl Answer {
    pub(super) fn new(request: Request, body: Arc<str>) -> Self {
        let Request { page, has_body, closes } = request;
        let (status, length) = (page.row().0, body.len());
        let kind = match page {
            Page::Metrics => "text/plain; version=0.0.4; charset=utf-8",
            _ => "text/plain; charset=utf-8",
        };
        let mut head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n");
        let allow = if matches!(page, Page::Options | Page::BadMethod) {
            "Allow: GET, HEAD, OPTIONS\r\n"
        } else {
            ""
        };
        let end = if closes { "Connection: close\r\n" } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(head, "{allow}{end}\r\n");
        Self { head, body: if has_body { body } else { Arc::default() }, sent: 0, closes }
    }
}
