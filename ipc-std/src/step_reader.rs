use std::io::{self, ErrorKind, Read};

use ipc_proto::nettrace::{Limits, Parser, Step, Version};

/// Reads a trace record by record: a [`Parser`], and the window that it looks at.
///
/// [`TraceReader`](crate::TraceReader) is the comfortable way to the events. This one has everything that the stream
/// has, in its order, and leaves it to the caller to make something of it. `R` is a file, a
/// [`TraceSession`](crate::TraceSession), or whatever else reads; it needs no buffer.
///
/// ```
/// use ipc_proto::nettrace::{End, Step};
/// use ipc_std::StepReader;
///
/// # fn main() -> std::io::Result<()> {
/// # std::env::set_current_dir(env!("CARGO_MANIFEST_DIR"))?;
/// let file = std::fs::File::open("../testdata/nettrace/gen-net10-lab-small.nettrace")?;
/// let mut steps = StepReader::new(file);
/// let (mut stacks, mut events) = (0, 0);
/// let end = loop {
///     match steps.next_step() {
///         Step::More { .. } => steps.read_more()?,
///         Step::Stack(_) => stacks += 1,
///         Step::Event(_) => events += 1,
///         Step::End(end) => break end,
///         _ => {}
///     }
/// };
/// assert_eq!((stacks, events, end), (26, 142, End::Complete));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StepReader<R> {
    reader: R,
    parser: Parser,
    /// The window is from `start` to `end`.
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// There is nothing more to read.
    over: bool,
}

/// The length of the window, unless a record needs more.
const WINDOW: usize = 256 << 10;

impl<R: Read> StepReader<R> {
    /// Reads from the first byte on. Nothing is read before [`read_more`](Self::read_more).
    pub fn new(reader: R) -> Self {
        Self::with_limits(reader, Limits::default())
    }

    /// The same with other limits. The window does not grow beyond twice [`Limits::record`], and never beyond what has
    /// come.
    pub fn with_limits(reader: R, limits: Limits) -> Self {
        let parser = Parser::new(limits);
        Self { reader, parser, buf: Vec::new(), start: 0, end: 0, over: false }
    }

    /// The next record, or [`Step::More`] if it is not here yet. Once all was read, the last is a [`Step::End`], which
    /// is repeated.
    #[inline]
    pub fn next_step(&mut self) -> Step<'_> {
        let window = self.buf.get(self.start..self.end).unwrap_or_default();
        match self.parser.next(window) {
            Step::More { .. } if self.over => Step::End(self.parser.finish(window)),
            step => step,
        }
    }

    /// Reads, once, what there is to be had. At the end of the input, [`next_step`](Self::next_step) gives the end.
    ///
    /// # Errors
    /// What the reader says, but for [`Interrupted`](ErrorKind::Interrupted), upon which it is asked again. Nothing is
    /// lost by it: one that has timed out may be asked another time.
    pub fn read_more(&mut self) -> io::Result<()> {
        self.make_room();
        let room = self.buf.get_mut(self.end..).unwrap_or_default();
        let n = loop {
            match self.reader.read(room) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.over = n == 0;
        // A reader that claims more than it was given room for is not believed.
        self.end = self.end.saturating_add(n).min(self.buf.len());
        Ok(())
    }

    /// Which layout the stream has, as far as it is known.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.parser.version()
    }

    /// As [`Parser::object_name`]: to be asked right behind [`Step::Block`].
    #[must_use]
    pub fn object_name(&self) -> Option<&[u8]> {
        self.parser.object_name(self.window())
    }

    /// The offset in the stream of what comes next.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.parser.offset()
    }

    /// What is read.
    #[must_use]
    pub const fn get_ref(&self) -> &R {
        &self.reader
    }

    /// What is read. Bytes that are taken from it are missing in the trace.
    pub const fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Gives back what is read. What was read of it and is not used yet is lost.
    pub fn into_inner(self) -> R {
        self.reader
    }

    /// What was read and not released, in which the last record lies.
    pub(crate) fn window(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    fn make_room(&mut self) {
        self.start = self.start.saturating_add(self.parser.release()).min(self.end);
        if self.start > 0 && self.buf.len().saturating_sub(self.end) < WINDOW / 2 {
            self.buf.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end.saturating_sub(self.start));
        }
        if self.buf.is_empty() {
            // Zero pages of the system, which a short trace leaves alone.
            self.buf = vec![0; WINDOW];
        } else if self.end == self.buf.len() {
            // Whatever a record claims to need, it is given no more than what has come so far.
            self.buf.resize(self.end.saturating_mul(2), 0);
        }
    }
}
