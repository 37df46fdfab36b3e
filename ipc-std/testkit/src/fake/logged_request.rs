//! `LoggedRequest`: a request that the fake runtime has received; and `RequestLog`: the newest of these requests.
use std::collections::VecDeque;

use ipc_proto::{Code, Message};

use crate::conformance::whole_message;

/// A request that a fake runtime has received.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedRequest {
    /// The received bytes.
    pub bytes: Vec<u8>,
}

impl LoggedRequest {
    /// Returns the message; `None` if the bytes are not a message.
    #[must_use]
    pub fn message(&self) -> Option<Message<'_>> {
        whole_message(&self.bytes)
    }

    /// Returns the command; `None` if the bytes are not a message.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        self.message().map(|message| message.code)
    }

    /// Returns the approximate memory of the request, in bytes.
    fn size(&self) -> usize {
        self.bytes.len().saturating_add(64)
    }
}

/// The newest requests, which together need at most [`LIMIT`](Self::LIMIT) bytes.
#[derive(Debug, Default)]
pub(super) struct RequestLog {
    requests: VecDeque<LoggedRequest>,
    size: usize,
}

impl RequestLog {
    const LIMIT: usize = 16 << 20;

    pub(super) fn push(&mut self, request: LoggedRequest) {
        self.size = self.size.saturating_add(request.size());
        self.requests.push_back(request);
        while self.size > Self::LIMIT {
            let Some(oldest) = self.requests.pop_front() else { break };
            self.size = self.size.saturating_sub(oldest.size());
        }
    }

    pub(super) fn to_vec(&self) -> Vec<LoggedRequest> {
        self.requests.iter().cloned().collect()
    }
}
