//! `Request`: the head of a request, and how it is answered.
use httparse::{EMPTY_HEADER, Error, Status};

use super::allowed_hosts::AllowedHosts;
use super::page::Page;

/// The maximum number of fields in the head of a request.
pub(super) const FIELD_LIMIT: usize = 64;
/// The maximum number of bytes that are discarded before a connection is closed, and of a body that is announced.
pub(super) const DISCARD_LIMIT: usize = 256 << 20;

/// How a request is answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) page: Page,
    /// Whether the answer has a body.
    pub(super) has_body: bool,
    /// Whether the connection ends after the answer.
    pub(super) closes: bool,
}

/// Returns the answer to a request that is refused: an error, after which the connection ends.
pub(super) const fn refused(page: Page) -> Request {
    Request { page, has_body: true, closes: true }
}

/// Returns the first request, and the length of its head. Returns `None` if it is not complete.
pub(super) fn parse(bytes: &[u8], hosts: &AllowedHosts) -> Option<(usize, Request)> {
    let mut fields = [EMPTY_HEADER; FIELD_LIMIT];
    let mut head = httparse::Request::new(&mut fields);
    match head.parse(bytes) {
        Ok(Status::Complete(used)) => Some((used, request(&head, hosts))),
        Ok(Status::Partial) => None,
        // Nothing follows the head of a request that is refused: the connection ends.
        Err(Error::Version) => Some((bytes.len(), refused(Page::BadVersion))),
        Err(Error::TooManyHeaders) => Some((bytes.len(), refused(Page::LongHead))),
        Err(_) => Some((bytes.len(), refused(Page::BadRequest))),
    }
}

/// Returns how a request is answered.
fn request(head: &httparse::Request<'_, '_>, hosts: &AllowedHosts) -> Request {
    let values = |name: &'static str| {
        let fields = head.headers.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        fields.map(|field| field.value)
    };
    let method = head.method.unwrap_or_default();
    let is_old = head.version == Some(0);
    let Some(body_length) = body_length(values("content-length"), values("transfer-encoding").count()) else {
        return refused(Page::BadFraming);
    };
    let mut own_hosts = values("host");
    let host = match (own_hosts.next(), own_hosts.next()) {
        (None, _) if is_old => Some(true),
        (Some(host), None) => core::str::from_utf8(host).ok().and_then(|host| hosts.allow(host.trim())),
        _ => None,
    };
    let (target_host, path) = target(head.path.unwrap_or_default());
    let host = match (host, target_host.map(|host| hosts.allow(host))) {
        (None, _) | (_, Some(None)) => return refused(Page::BadHost),
        (Some(host), target) => host && target.flatten().unwrap_or(true),
    };
    let asks_to_close = values("connection").any(|value| {
        value.split(|byte| *byte == b',').any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
    });
    let page = match (method, path) {
        _ if !host => Page::ForbiddenHost,
        ("OPTIONS", _) => Page::Options,
        ("GET" | "HEAD", Some("/metrics")) => Page::Metrics,
        ("GET" | "HEAD", Some("/")) => Page::Index,
        ("GET" | "HEAD", Some(_)) => Page::NotFound,
        ("GET" | "HEAD", None) => return refused(Page::BadRequest),
        _ => Page::BadMethod,
    };
    Request { page, has_body: method != "HEAD", closes: is_old || asks_to_close || body_length > 0 }
}

/// Returns the length of a body, [`usize::MAX`] if it is not stated before. Returns `None` if the body cannot be
/// separated from the next request, or is too long to be discarded.
fn body_length<'a>(mut lengths: impl Iterator<Item = &'a [u8]>, encodings: usize) -> Option<usize> {
    match (lengths.next(), lengths.next(), encodings) {
        (None, _, 0) => Some(0),
        (None, _, _) => Some(usize::MAX),
        (Some(length), None, 0) if length.iter().all(u8::is_ascii_digit) => {
            let length = core::str::from_utf8(length).ok()?.parse().ok()?;
            (length <= DISCARD_LIMIT).then_some(length)
        }
        _ => None,
    }
}

/// Returns the authority and the path of a target, without its query.
fn target(target: &str) -> (Option<&str>, Option<&str>) {
    const SCHEME: &str = "http://";
    if target.starts_with('/') {
        return (None, target.split('?').next());
    }
    let (scheme, rest) = target.split_at_checked(SCHEME.len()).unwrap_or_default();
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return (None, None);
    }
    let (authority, path) =
        rest.split_at_checked(rest.find(['/', '?']).unwrap_or(rest.len())).unwrap_or_default();
    (Some(authority), path.split('?').next().map(|path| if path.is_empty() { "/" } else { path }))
}
