use super::{Exchange, Step};
use crate::types::{Environment, ProcessEnvironment};
use crate::wire::{Reader, Writer};
use crate::{Decode, DecodeError, DecodeErrorKind, Encode, EncodeError, ProtocolError, Text};

/// A tool's side: the environment, which follows the answer to `GetProcessEnvironment`.
///
/// ```text
///  0       4
/// | count | entry | entry | …     incoming_bytes in all, which may be far more than a message can hold
///   u32     Text    Text
/// ```
///
/// It comes in pieces as large as the buffer, which must hold the longest entry: drive it, take the
/// [entries](Self::next_entry) that have come, and drive on until it [is finished](Self::is_finished).
///
/// ```
/// use ipc_proto::{Exchange, ReceiveEnvironment, Step, types::ProcessEnvironment};
///
/// let mut incoming = &b"\x02\0\0\0\x04\0\0\0A\0=\0b\0\0\0\x02\0\0\0C\0\0\0"[..];
/// let announced = ProcessEnvironment { incoming_bytes: incoming.len() as u32, future: 0 };
/// let mut buf = [0; 16]; // smaller than what comes
/// let mut receive = ReceiveEnvironment::new(&announced, 1 << 20, &mut buf)?;
/// let mut entries = Vec::new();
/// while !receive.is_finished() {
///     while let Step::Receive(space) = receive.step() {
///         let n = space.len().min(incoming.len());
///         space[..n].copy_from_slice(&incoming[..n]);
///         incoming = &incoming[n..];
///         receive.advance(n)?;
///     }
///     while let Some(entry) = receive.next_entry()? {
///         entries.push(entry.to_string());
///     }
/// }
/// assert_eq!(entries, ["A=b", "C"]);
/// # Ok::<(), ipc_proto::ProtocolError>(())
/// ```
#[derive(Debug)]
pub struct ReceiveEnvironment<'b> {
    buf: &'b mut [u8],
    /// The bytes of `buf` that have come and are not read yet.
    start: usize,
    end: usize,
    /// Bytes still to come.
    left: usize,
    /// Bytes read: the offset of `start` in the continuation.
    offset: usize,
    /// Entries still to come; `None` before the count has.
    entries: Option<u32>,
}

impl<'b> ReceiveEnvironment<'b> {
    /// Waits for what `announced` says will follow.
    ///
    /// # Errors
    /// [`ProtocolError::TooLong`] if that is more than `limit` bytes; [`ProtocolError::BufferTooSmall`] if `buf` cannot
    /// hold even the count.
    pub fn new(announced: &ProcessEnvironment, limit: u32, buf: &'b mut [u8]) -> Result<Self, ProtocolError> {
        let len = announced.incoming_bytes;
        if len > limit {
            return Err(ProtocolError::TooLong { len: len.into(), limit: limit.into() });
        }
        if buf.len() < Environment::MIN_LEN {
            return Err(ProtocolError::BufferTooSmall { needed: Environment::MIN_LEN });
        }
        let left = usize::try_from(len).unwrap_or(usize::MAX);
        Ok(Self { buf, start: 0, end: 0, left, offset: 0, entries: None })
    }

    /// The next entry, mostly `NAME=value`; `None` if it has not come yet, or there is none.
    ///
    /// # Errors
    /// [`ProtocolError::BufferTooSmall`] for an entry longer than the buffer, which [`into_buffer`](Self::into_buffer)
    /// mends; [`ProtocolError::Decode`] for bytes that are no such list; offsets count from the start of the continuation.
    pub fn next_entry(&mut self) -> Result<Option<Text<'_>>, ProtocolError> {
        if self.entries.is_none() {
            self.entries = match self.peek_u32()? {
                None => return Ok(None),
                Some(count) => Some(count),
            };
            self.take(4);
        }
        let Some(entries) = self.entries.filter(|entries| *entries > 0) else {
            return if self.start < self.end || self.left > 0 {
                Err(self.error(DecodeErrorKind::TrailingBytes))
            } else {
                Ok(None)
            };
        };
        let Some(units) = self.peek_u32()? else { return Ok(None) };
        let len = usize::try_from(units).ok().and_then(|units| units.checked_mul(2)?.checked_add(4));
        let len = len.ok_or_else(|| self.error(DecodeErrorKind::UnexpectedEnd))?;
        if !self.has(len)? {
            return Ok(None);
        }
        let (start, offset) = (self.start, self.offset);
        self.take(len);
        self.entries = entries.checked_sub(1);
        Ok(Some(Reader::at(self.buf.get(start..self.start).unwrap_or_default(), offset).read()?))
    }

    /// Goes on in a larger buffer after [`ProtocolError::BufferTooSmall`].
    #[must_use]
    pub fn into_buffer<'c>(self, buf: &'c mut [u8]) -> ReceiveEnvironment<'c> {
        let Self { buf: old, start, end, left, offset, entries } = self;
        let kept = old.get(start..end).unwrap_or_default();
        buf.iter_mut().zip(kept).for_each(|(to, from)| *to = *from);
        ReceiveEnvironment { end: kept.len().min(buf.len()), buf, start: 0, left, offset, entries }
    }

    /// Whether every entry has been taken.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.entries == Some(0) && self.left == 0 && self.start == self.end
    }

    fn error(&self, kind: DecodeErrorKind) -> ProtocolError {
        DecodeError { kind, offset: self.offset }.into()
    }

    fn peek_u32(&mut self) -> Result<Option<u32>, ProtocolError> {
        if !self.has(4)? {
            return Ok(None);
        }
        Ok(Some(Reader::new(self.buf.get(self.start..self.end).unwrap_or_default()).read()?))
    }

    fn take(&mut self, n: usize) {
        self.start = self.start.saturating_add(n);
        self.offset = self.offset.saturating_add(n);
    }

    /// Whether the next `n` bytes are here; makes room for them if they are to come.
    fn has(&mut self, n: usize) -> Result<bool, ProtocolError> {
        let here = self.end.saturating_sub(self.start);
        if n <= here {
            return Ok(true);
        }
        if n > here.saturating_add(self.left) {
            return Err(self.error(DecodeErrorKind::UnexpectedEnd));
        }
        if n > self.buf.len() {
            return Err(ProtocolError::BufferTooSmall { needed: n });
        }
        // Not copy_within: it can panic, and this cannot.
        for to in 0..here {
            let byte = self.buf.get(self.start.saturating_add(to)).copied().unwrap_or_default();
            if let Some(to) = self.buf.get_mut(to) {
                *to = byte;
            }
        }
        (self.start, self.end) = (0, here);
        Ok(false)
    }
}

impl Exchange for ReceiveEnvironment<'_> {
    fn step(&mut self) -> Step<'_> {
        let end = self.end.saturating_add(self.left).min(self.buf.len());
        self.buf.get_mut(self.end..end).filter(|space| !space.is_empty()).map_or(Step::Done, Step::Receive)
    }

    fn advance(&mut self, n: usize) -> Result<(), ProtocolError> {
        if n == 0 && self.left > 0 {
            let received = self.offset.saturating_add(self.end.saturating_sub(self.start));
            self.left = 0;
            return Err(ProtocolError::Closed { received });
        }
        let n = n.min(self.left).min(self.buf.len().saturating_sub(self.end));
        self.end = self.end.saturating_add(n);
        self.left = self.left.saturating_sub(n);
        Ok(())
    }
}

/// A runtime's side: the environment, in pieces as large as the buffer.
///
/// Every piece encodes all of the environment again and keeps what the buffer holds, so a buffer of a few KiB is slow
/// for an environment of MiBs, and right all the same.
///
/// ```
/// use ipc_proto::{Array, Exchange, SendEnvironment, Step, Text};
///
/// let entries = [Text::from("A=b"), Text::from("C")];
/// let mut buf = [0; 10];
/// let mut send = SendEnvironment::new(Array::from(&entries), &mut buf)?;
/// assert_eq!(send.announcement().incoming_bytes, 24); // what to answer first
/// let mut sent = Vec::new();
/// while let Step::Send(bytes) = send.step() {
///     sent.extend_from_slice(bytes);
///     let n = bytes.len();
///     send.advance(n)?;
/// }
/// assert_eq!(sent, b"\x02\0\0\0\x04\0\0\0A\0=\0b\0\0\0\x02\0\0\0C\0\0\0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SendEnvironment<'e, 'b> {
    environment: Environment<'e>,
    buf: &'b mut [u8],
    len: u32,
    /// Bytes sent before those in `buf`.
    before: usize,
    /// The bytes in `buf` that are not sent yet.
    start: usize,
    end: usize,
}

impl<'e, 'b> SendEnvironment<'e, 'b> {
    /// Sends `environment` through `buf`, of whatever size but 0.
    ///
    /// # Errors
    /// If `buf` is empty, or the environment has more bytes than a `u32` counts.
    pub fn new(environment: Environment<'e>, buf: &'b mut [u8]) -> Result<Self, EncodeError> {
        let len = environment.encoded_len();
        let Ok(len) = u32::try_from(len) else { return Err(EncodeError::MessageTooLong { len }) };
        if buf.is_empty() {
            return Err(EncodeError::BufferTooSmall { needed: 1 });
        }
        let mut send = Self { environment, buf, len, before: 0, start: 0, end: 0 };
        send.fill();
        Ok(send)
    }

    /// What to answer before this is sent.
    #[must_use]
    pub const fn announcement(&self) -> ProcessEnvironment {
        ProcessEnvironment { incoming_bytes: self.len, future: 0 }
    }

    fn fill(&mut self) {
        let mut w = Writer::window(self.buf, self.before);
        self.environment.encode(&mut w);
        let left = w.len().saturating_sub(self.before);
        (self.start, self.end) = (0, left.min(self.buf.len()));
    }
}

impl Exchange for SendEnvironment<'_, '_> {
    fn step(&mut self) -> Step<'_> {
        match self.buf.get(self.start..self.end) {
            Some(bytes) if !bytes.is_empty() => Step::Send(bytes),
            _ => Step::Done,
        }
    }

    fn advance(&mut self, n: usize) -> Result<(), ProtocolError> {
        if n == 0 && self.start < self.end {
            (self.start, self.end) = (0, 0);
            return Err(ProtocolError::Closed { received: 0 });
        }
        self.start = self.start.saturating_add(n).min(self.end);
        if self.start == self.end && self.end > 0 {
            self.before = self.before.saturating_add(self.end);
            self.fill();
        }
        Ok(())
    }
}
