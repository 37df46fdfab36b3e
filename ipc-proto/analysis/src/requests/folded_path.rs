//! Paths of requests without what differs between requests of the same kind.
use alloc::borrow::ToOwned;
use alloc::string::String;

use crate::names::cut;

/// The path of a request, without its query, in which the parts that differ between requests of the same kind are
/// replaced.
///
/// | part of the path | becomes |
/// |---|---|
/// | a number, with a sign or with `-`, `_`, `,` or `:` in between, such as a date | `{n}` |
/// | among other characters: four digits or more, or a number after `-`, `_`, `:` or `=` | `{n}` in their place |
/// | a GUID, with hyphens and braces or without | `{guid}` |
/// | 16 characters or more, in which letters and digits change at least three times, or any 40 | `{token}` |
///
/// ```
/// use nettrace_analysis::requests::FoldedPath;
///
/// let path = FoldedPath::new("/orders/4711/items?page=2");
/// assert_eq!((path.text.as_str(), path.is_folded), ("/orders/{n}/items", true));
/// assert!(!FoldedPath::new("/api/v2/orders").is_folded);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct FoldedPath {
    /// The path, cut to 256 bytes.
    pub text: String,
    /// Whether a part was replaced.
    pub is_folded: bool,
}

impl FoldedPath {
    const MAX: usize = 256;

    /// Returns the path of the requests for whose paths there is no room.
    pub(super) fn others() -> Self {
        Self { text: "[other paths]".to_owned(), is_folded: true }
    }

    /// Folds a path.
    #[must_use]
    pub fn new(path: &str) -> Self {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let (mut text, mut is_folded) = (String::new(), false);
        for (place, segment) in path.split('/').enumerate() {
            if text.len() > Self::MAX {
                break;
            }
            if place > 0 {
                text.push('/');
            }
            is_folded |= push_segment(&mut text, segment);
        }
        Self { text: cut(&text, Self::MAX).to_owned(), is_folded }
    }
}

/// Appends a part of a path, and returns whether it was folded.
fn push_segment(text: &mut String, segment: &str) -> bool {
    let folded = if is_number(segment) {
        "{n}"
    } else if is_guid(segment) {
        "{guid}"
    } else if is_token(segment) {
        "{token}"
    } else {
        return push_with_folded_numbers(text, segment);
    };
    text.push_str(folded);
    true
}

fn is_number(segment: &str) -> bool {
    segment.contains(|c: char| c.is_ascii_digit())
        && segment.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '_' | ',' | ':' | '+'))
}

fn is_guid(segment: &str) -> bool {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let inner = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(segment);
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (inner.len() == 32 && is_hex(inner))
        || (inner.split('-').map(str::len).eq(GROUPS) && inner.split('-').all(is_hex))
}

fn is_token(segment: &str) -> bool {
    const LONG: usize = 16;
    const VERY_LONG: usize = 40;
    // A short change between letters and digits is common in words: `oauth2-v1`.
    const CHANGES: usize = 3;
    if segment.len() >= VERY_LONG {
        return true;
    }
    let kinds = || segment.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.is_ascii_digit());
    let changes = kinds().zip(kinds().skip(1)).filter(|(one, next)| one != next).count();
    segment.len() >= LONG && changes >= CHANGES
}

/// Appends a part of a path, with `{n}` in the place of each number that is long, or follows a separator.
fn push_with_folded_numbers(text: &mut String, segment: &str) -> bool {
    const LONG: usize = 4;
    let (mut rest, mut is_folded) = (segment, false);
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let len = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        let (digits, after) = from.split_at(len);
        // A number in a word, as in `v2` and `sha256`, is part of its meaning.
        let is_own_word =
            before.ends_with(['-', '_', ':', '=']) && !after.starts_with(|c: char| c.is_alphanumeric());
        let is_number = len >= LONG || is_own_word;
        text.push_str(before);
        text.push_str(if is_number { "{n}" } else { digits });
        is_folded |= is_number;
        rest = after;
    }
    text.push_str(rest);
    is_folded
}

#[cfg(test)]
mod tests {
    use super::FoldedPath;

    #[test]
    fn folded() {
        for (path, expected) in [
            ("/orders/1", "/orders/{n}"),
            ("/orders/-1/", "/orders/{n}/"),
            ("/transfers/1/2", "/transfers/{n}/{n}"),
            ("/reports/2026-11-25", "/reports/{n}"),
            ("/customers/0F8FAD5B-D9CB-469F-A165-70867728950E/x", "/customers/{guid}/x"),
            ("/customers/{0f8fad5b-d9cb-469f-a165-70867728950e}", "/customers/{guid}"),
            ("/customers/0f8fad5bd9cb469fa16570867728950e", "/customers/{guid}"),
            ("/docs/507f1f77bcf86cd799439011", "/docs/{token}"),
            ("/docs/01ARZ3NDEKTSV4RRFFQ69G5FAV", "/docs/{token}"),
            ("/confirm/eyJhbGciOiJub25lIn0.abcdefghijklmnopqrstuvwxyz", "/confirm/{token}"),
            ("/invoices/invoice-20261125.pdf?x=1", "/invoices/invoice-{n}.pdf"),
            ("/a/12345#top", "/a/{n}"),
            ("/internal/stock/SKU-17", "/internal/stock/SKU-{n}"),
            ("/stock/SKU_17.json", "/stock/SKU_{n}.json"),
        ] {
            let folded = FoldedPath::new(path);
            assert_eq!((folded.text.as_str(), folded.is_folded), (expected, true), "{path}");
        }
    }

    #[test]
    fn unchanged() {
        for path in [
            "",
            "/",
            "/health",
            "/api/v2/orders",
            "/oauth2/token",
            "/sha256-rsa",
            "/api-v2",
            "/internationalization",
            "/größe/straße",
            "//",
        ] {
            let folded = FoldedPath::new(path);
            assert_eq!((folded.text.as_str(), folded.is_folded), (path, false));
        }
    }

    #[test]
    fn long_paths_are_cut() {
        assert!(FoldedPath::new(&"/ö".repeat(10_000)).text.len() <= FoldedPath::MAX);
        assert_eq!(FoldedPath::new(&"x".repeat(10_000)).text, "{token}");
    }
}
