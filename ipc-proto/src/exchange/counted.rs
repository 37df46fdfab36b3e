//! The environment of a process, which follows an answer. It is received and sent in pieces: it can exceed any buffer.
use super::{Exchange, Step};
use crate::types::{EnvironmentEntries, ProcessEnvironment};
use crate::wire::{Iter, Reader, Writer, to_u32, to_usize};
use crate::{Decode, DecodeError, DecodeErrorKind, Encode, EncodeError, ProtocolError, Text};

/// The client's role: receives the environment, which follows the answer to `GetProcessEnvironment`.
///
/// ```text
///  0       4
/// | count | entry | entry | …     incoming_bytes in total; can be longer than any message
///   u32     Text    Text
/// ```
///
/// It arrives in pieces, into a buffer that must be large enough for the longest entry. Drive the exchange, take the
/// [entries](Self::next_entry) that have arrived, and repeat until the exchange [is finished](Self::is_finished).
///
/// ```
/// use ipc_proto::{Exchange, ProtocolError, ReceiveEnvironment, types::ProcessEnvironment};
///
/// let mut incoming = &b"\x02\0\0\0\x04\0\0\0A\0=\0b\0\0\0\x02\0\0\0C\0\0\0"[..];
/// let announced = ProcessEnvironment { incoming_bytes: incoming.len() as u32, future: 0 };
/// let mut buf = vec![0; 8]; // smaller than the environment, and than its first entry
/// let mut receive = ReceiveEnvironment::new(&announced, 1 << 20, &mut buf)?;
/// let mut entries = Vec::new();
/// while !receive.is_finished() {
///     let taken = receive.supply(incoming);
///     incoming = &incoming[taken..];
///     match receive.next_entry() {
///         Ok(entry) => entries.extend(entry.map(|entry| entry.to_string())),
///         Err(ProtocolError::BufferTooSmall { needed }) => {
///             let suspended = receive.suspend();
///             buf.resize(needed, 0);
///             receive = suspended.resume(&mut buf)?;
///         }
///         Err(error) => return Err(error.into()),
///     }
/// }
/// assert_eq!(entries, ["A=b", "C"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ReceiveEnvironment<'b> {
    buf: &'b mut [u8],
    /// `buf[start..end]` has arrived and is not read yet.
    start: usize,
    end: usize,
    /// The number of bytes that have not arrived yet.
    left: usize,
    /// The number of read bytes: the offset of `start` in the continuation.
    offset: usize,
    /// The number of entries that are not read yet; `None` before the count has arrived.
    entries: Option<u32>,
}

impl<'b> ReceiveEnvironment<'b> {
    /// Creates an exchange that receives the announced bytes.
    ///
    /// # Errors
    /// [`ProtocolError::TooLong`] for more than `limit` bytes; [`ProtocolError::BufferTooSmall`] if `buf` has less than
    /// 4 bytes.
    pub fn new(announced: &ProcessEnvironment, limit: u32, buf: &'b mut [u8]) -> Result<Self, ProtocolError> {
        let len = announced.incoming_bytes;
        if len > limit {
            return Err(ProtocolError::TooLong { len: len.into(), limit: limit.into() });
        }
        if buf.len() < EnvironmentEntries::MIN_LEN {
            return Err(ProtocolError::BufferTooSmall { needed: EnvironmentEntries::MIN_LEN });
        }
        Ok(Self { buf, start: 0, end: 0, left: to_usize(len), offset: 0, entries: None })
    }

    /// Returns the next entry, usually `NAME=value`; `None` if the entry has not arrived yet, or all entries were
    /// returned. [`EnvironmentEntry::parse`](crate::types::EnvironmentEntry::parse) splits an entry.
    ///
    /// # Errors
    /// [`ProtocolError::BufferTooSmall`] for an entry longer than the buffer: [suspend](Self::suspend) the exchange and
    /// resume it with a larger buffer. [`ProtocolError::Decode`] for malformed bytes; offset 0 is the count of entries.
    pub fn next_entry(&mut self) -> Result<Option<Text<'_>>, ProtocolError> {
        if self.entries.is_none() {
            let Some(count) = self.peek_u32()? else { return Ok(None) };
            self.entries = Some(count);
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
        let len = to_usize(units).checked_mul(2).and_then(|len| len.checked_add(4));
        let len = len.ok_or_else(|| self.error(DecodeErrorKind::UnexpectedEnd))?;
        if !self.has(len)? {
            return Ok(None);
        }
        let (start, offset) = (self.start, self.offset);
        self.take(len);
        self.entries = entries.checked_sub(1);
        Ok(Some(Reader::at(self.buf.get(start..self.start).unwrap_or_default(), offset).read()?))
    }

    /// Releases the buffer. The exchange continues with [`SuspendedEnvironment::resume`].
    #[must_use]
    pub const fn suspend(self) -> SuspendedEnvironment {
        let Self { start, end, left, offset, entries, .. } = self;
        SuspendedEnvironment { start, end, left, offset, entries }
    }

    /// Returns whether [`next_entry`](Self::next_entry) has returned all entries.
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

    /// Returns whether the next `n` bytes have arrived. If not, moves the unread bytes to the front to make room.
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
        // A loop, because the compiler cannot prove that `copy_within` never panics.
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

/// A [`ReceiveEnvironment`] without its buffer, for a connection that owns the buffer, or to continue in a larger
/// buffer after [`ProtocolError::BufferTooSmall`], as in the example of [`ReceiveEnvironment`].
#[derive(Debug, Clone, Copy)]
pub struct SuspendedEnvironment {
    start: usize,
    end: usize,
    left: usize,
    offset: usize,
    entries: Option<u32>,
}

impl SuspendedEnvironment {
    /// Continues in `buf`, which must begin with the bytes of the buffer that [`ReceiveEnvironment::suspend`] released.
    ///
    /// # Errors
    /// [`ProtocolError::BufferTooSmall`] if `buf` cannot contain the received bytes. The exchange can be resumed again.
    pub fn resume(self, buf: &mut [u8]) -> Result<ReceiveEnvironment<'_>, ProtocolError> {
        let needed = self.end.max(EnvironmentEntries::MIN_LEN);
        if buf.len() < needed {
            return Err(ProtocolError::BufferTooSmall { needed });
        }
        let Self { start, end, left, offset, entries } = self;
        Ok(ReceiveEnvironment { buf, start, end, left, offset, entries })
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
        let lent = self.left.min(self.buf.len().saturating_sub(self.end));
        if n > lent {
            self.left = 0;
            return Err(ProtocolError::Overrun { advanced: n, lent });
        }
        self.end = self.end.saturating_add(n);
        self.left = self.left.saturating_sub(n);
        Ok(())
    }
}

/// The server's role: sends the environment, in pieces of the size of the buffer.
///
/// An entry that crosses the end of the buffer is encoded again for each of its pieces. So a buffer that is as long as
/// the whole environment is the fastest.
///
/// ```
/// use ipc_proto::{Array, Exchange, SendEnvironment, Step, Text};
///
/// let entries = [Text::from("A=b"), Text::from("C")];
/// let mut buf = [0; 10];
/// let mut send = SendEnvironment::new(Array::from(&entries), &mut buf)?;
/// assert_eq!(send.announcement().incoming_bytes, 24); // the answer to send first
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
    len: u32,
    /// The number of entries, the first value to send; `None` after its last byte was stored in `buf`.
    count: Option<u32>,
    /// The entries whose last byte was not stored in `buf` yet.
    entries: Iter<'e, Text<'e>>,
    /// How many bytes of the next value were stored: of `count`, or, if that is `None`, of the first of `entries`.
    stored: usize,
    buf: &'b mut [u8],
    /// `buf[start..end]` is not sent yet.
    start: usize,
    end: usize,
}

impl<'e, 'b> SendEnvironment<'e, 'b> {
    /// Creates an exchange that sends `environment` through `buf`. Any length of `buf` except 0 is allowed.
    ///
    /// # Errors
    /// If `buf` is empty, or the length of the environment does not fit into a `u32`.
    pub fn new(environment: EnvironmentEntries<'e>, buf: &'b mut [u8]) -> Result<Self, EncodeError> {
        let len = environment.encoded_len();
        let Ok(len) = u32::try_from(len) else { return Err(EncodeError::MessageTooLong { len }) };
        if buf.is_empty() {
            return Err(EncodeError::BufferTooSmall { needed: 1 });
        }
        let (count, entries) = (Some(to_u32(environment.len())), environment.iter());
        let mut send = Self { len, count, entries, stored: 0, buf, start: 0, end: 0 };
        send.fill();
        Ok(send)
    }

    /// Returns the answer that must be sent before the environment.
    #[must_use]
    pub const fn announcement(&self) -> ProcessEnvironment {
        ProcessEnvironment { incoming_bytes: self.len, future: 0 }
    }

    /// Fills the buffer with the next piece, which continues the value in which the last piece ended.
    fn fill(&mut self) {
        let room = self.stored.saturating_add(self.buf.len());
        let mut w = Writer::window(self.buf, self.stored);
        let mut complete = 0;
        if let Some(count) = self.count {
            count.encode(&mut w);
            if w.len() <= room {
                self.count = None;
                complete = w.len();
            }
        }
        let mut entries = self.entries.clone();
        while w.len() < room {
            let Some(entry) = entries.next() else { break };
            entry.encode(&mut w);
            if w.len() <= room {
                self.entries = entries.clone();
                complete = w.len();
            }
        }
        let end = w.len().min(room);
        (self.start, self.end) = (0, end.saturating_sub(self.stored));
        self.stored = end.saturating_sub(complete);
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
        let lent = self.end.saturating_sub(self.start);
        if n > lent {
            (self.start, self.end) = (0, 0);
            return Err(ProtocolError::Overrun { advanced: n, lent });
        }
        if n == 0 && lent > 0 {
            (self.start, self.end) = (0, 0);
            return Err(ProtocolError::Closed { received: 0 });
        }
        self.start = self.start.saturating_add(n);
        if self.start == self.end && self.end > 0 {
            self.fill();
        }
        Ok(())
    }
}
