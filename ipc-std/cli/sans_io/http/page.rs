//! `Page`: what the server answers.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Metrics,
    Index,
    Options,
    NotFound,
    BadRequest,
    BadFraming,
    BadHost,
    ForbiddenHost,
    BadMethod,
    TimedOut,
    LongHead,
    BadVersion,
}

impl Page {
    /// Returns the status line, and the text unless the page is the metrics.
    pub(super) const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Metrics => ("200 OK", ""),
            Self::Index => ("200 OK", "dotnet-ipc counters: see /metrics\n"),
            Self::Options => ("200 OK", ""),
            Self::NotFound => ("404 Not Found", "not found: see /metrics\n"),
            Self::BadRequest => ("400 Bad Request", "this is no request of HTTP/1.1\n"),
            Self::BadFraming => ("400 Bad Request", "the length of the body is ambiguous or too large\n"),
            Self::BadHost => {
                ("400 Bad Request", "a request has one field Host, which is HOST or HOST:PORT\n")
            }
            Self::ForbiddenHost => (
                "403 Forbidden",
                "this name of the server is not allowed, as a page in a browser could read its answers: \
                 use an IP address or localhost, or start `dotnet-ipc counters` with --allow-host NAME\n",
            ),
            Self::BadMethod => ("405 Method Not Allowed", "only GET is supported\n"),
            Self::TimedOut => ("408 Request Timeout", "the request is not complete in time\n"),
            Self::LongHead => {
                ("431 Request Header Fields Too Large", "a request has at most 8 KiB and 64 fields\n")
            }
            Self::BadVersion => {
                ("505 HTTP Version Not Supported", "only HTTP/1.1 and HTTP/1.0 are supported\n")
            }
        }
    }
}
