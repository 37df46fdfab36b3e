//! What the tool decides without I/O: the syntax of its options and of its inputs, and the HTTP of its server.
//!
//! This library is not an API. It is for the program `dotnet-ipc`, and for the fuzz targets of the repository.
#![allow(missing_docs, clippy::missing_errors_doc, reason = "it is not an API")]

/// The HTTP of `counters --serve`.
pub mod http {
    pub mod allowed_hosts;
    mod answer;
    pub mod http_exchange;
    mod page;
    mod request;
}

/// The syntax of options and of inputs.
pub mod syntax {
    pub mod decode_input;
    pub mod durations;
    pub mod event_ids;
    pub mod hex;
    pub mod keywords;
    pub mod only_arg;
    pub mod provider;
    pub mod unsigned;
}
