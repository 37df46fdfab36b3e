//! `decode`: shows messages field by field.
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use dotnet_ipc_sans_io::syntax::decode_input::{Input, Piece};
use dotnet_ipc_sans_io::syntax::hex;
use ipc_proto::types::ProcessEnvironment;
use ipc_proto::{
    Advertise, Code, Continuation, Direction, EncodeError, GetProcessEnvironment, Message, Observation,
    Observe, Observed, encode,
};

use crate::args::command_code::parse_command;
use crate::input::source::Source;
use crate::output::stdout::to_stdout;
use crate::run::{Failure, Globals, Kind};

mod frame;

use frame::Frame;

/// Show messages field by field, with the offset of every byte
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("decode.txt"))]
pub(crate) struct Args {
    /// Messages: hexadecimal digits, a file, or `-` for standard input
    #[arg(value_name = "HEX|FILE|-")]
    input: Vec<String>,
    /// Command of the responses, by name or code, which an OK response does not contain [default: the request before
    /// the response]
    #[arg(long, value_name = "COMMAND", value_parser = parse_command)]
    answer_to: Option<Code>,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let input = input(args)?;
    let mut decoder = Decoder { answer_to: args.answer_to, connections: HashMap::new() };
    let mut decoded = Decoded::default();
    let mut understood = Ok(());
    // Each frame is written as soon as it is decoded, field by field, because a frame can have millions of fields.
    to_stdout(|out| {
        understood =
            input.for_each_piece(|piece| decoder.decode(piece, |frame| decoded.show(frame, globals, out)))?;
        Ok(())
    })?;
    understood.map_err(Failure::usage)?;
    decoded.check()
}

/// Counts the frames that were written, and the malformed ones among them.
#[derive(Debug, Default)]
struct Decoded {
    frames: usize,
    /// The number of the first malformed frame and its error.
    first_malformed: Option<(usize, String)>,
    malformed: usize,
}

impl Decoded {
    fn show(&mut self, frame: &Frame<'_>, globals: &Globals, out: &mut dyn Write) -> io::Result<()> {
        self.frames = self.frames.saturating_add(1);
        if let Some(error) = frame.error() {
            self.malformed = self.malformed.saturating_add(1);
            self.first_malformed.get_or_insert_with(|| (self.frames, error.to_string()));
        }
        if globals.json {
            return frame.write_json(out);
        }
        if self.frames > 1 {
            writeln!(out)?;
        }
        frame.write(out)
    }

    /// Fails if a frame was malformed.
    fn check(self) -> Result<(), Failure> {
        let Some((number, error)) = self.first_malformed else { return Ok(()) };
        let which = if self.frames == 1 { "the message".to_owned() } else { format!("message {number}") };
        let more = match self.malformed.saturating_sub(1) {
            0 => String::new(),
            more => format!(", and {more} more are malformed too"),
        };
        Err(Failure::new(Kind::Protocol, format!("{which} is malformed: {error}{more}"))
            .with_hint("the output contains the valid fields before that byte"))
    }
}

/// Returns the bytes to decode, from the operands or from standard input.
fn input(args: &Args) -> Result<Input, Failure> {
    let (name, bytes) = match args.input.as_slice() {
        [] if io::stdin().is_terminal() => {
            return Err(Failure::usage("no messages: pass digits or a file"));
        }
        [] => read("-")?,
        [one] if one == "-" || Path::new(one).exists() => read(one)?,
        all => match hex::parse(&all.join(" ")) {
            Ok(bytes) => return Ok(Input::Messages(bytes)),
            Err(_) if all.len() == 1 && all.iter().any(|one| one.contains(['/', '.'])) => {
                return Err(Failure::new(Kind::Io, format!("there is no file {}", all.join(" "))));
            }
            Err(e) => return Err(Failure::usage(format!("{e}, nor is there such a file"))),
        },
    };
    Input::recognise(&name, bytes).map_err(|e| Failure::usage(format!("{name}: {e}")))
}

fn read(input: &str) -> Result<(String, Vec<u8>), Failure> {
    let mut source = Source::open(Path::new(input))?;
    let mut bytes = Vec::new();
    match source.read_to_end(&mut bytes) {
        Ok(_) => Ok((source.name().into_owned(), bytes)),
        Err(e) => Err(source.failed(&e)),
    }
}

/// Splits bytes into frames.
struct Decoder {
    /// The command of all responses, if the command line specifies it.
    answer_to: Option<Code>,
    connections: HashMap<String, Connection>,
}

/// A connection of the input.
struct Connection {
    /// Of a message that is longer than the buffer it sees only the header. A message whose payload decides what follows
    /// it is short.
    observe: Observe<[u8; Advertise::LEN]>,
    /// The command of the last request.
    asked: Option<Code>,
    /// The length of the environment after the last response, in bytes.
    announced: usize,
}

impl Decoder {
    fn decode(
        &mut self,
        piece: Piece<'_>,
        mut show: impl FnMut(&Frame<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let connection = piece.logged.map(|logged| logged.connection.to_string()).unwrap_or_default();
        let connection = match self.connections.entry(connection) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Connection::new(self.answer_to).map_err(io::Error::other)?),
        };
        let mut at = 0;
        loop {
            let rest = piece.bytes.get(at..).unwrap_or_default();
            let mut frame = connection.frame(rest, self.answer_to).map_err(io::Error::other)?;
            (frame.at, frame.logged) = (at, piece.logged);
            show(&frame)?;
            at = at.saturating_add(frame.bytes.len());
            if at >= piece.bytes.len() {
                return Ok(());
            }
        }
    }
}

impl Connection {
    /// Creates a connection on which a request of this command was sent.
    fn new(asked: Option<Code>) -> Result<Self, EncodeError> {
        let mut observe = Observe::new([0; Advertise::LEN], [0; Advertise::LEN])?;
        if let Some(code) = asked {
            let mut buf = [0; Message::HEADER_LEN];
            observe.supply(Direction::ToRuntime, encode(code, &GetProcessEnvironment {}, &mut buf)?);
        }
        Ok(Self { observe, asked, announced: 0 })
    }

    /// Returns the frame at the beginning of the bytes.
    fn frame<'a>(&mut self, bytes: &'a [u8], answer_to: Option<Code>) -> Result<Frame<'a>, EncodeError> {
        // In a message: the set of commands.
        let is_request = bytes.starts_with(&Message::MAGIC) && bytes.get(16) != Some(&Code::OK.set());
        let direction = if is_request { Direction::ToRuntime } else { Direction::ToClient };
        // Each request has its own connection, also in bytes without the numbers of connections.
        if is_request {
            *self = Self::new(None)?;
        }
        let (mut seen, mut observed) = self.observe.supply(direction, bytes);
        if let Some(Observed { observation: Observation::Lost(_), .. }) = observed {
            // These bytes follow a whole response, so they belong to another connection; or they are malformed.
            *self = Self::new(self.asked)?;
            (seen, observed) = self.observe.supply(direction, bytes);
        }
        match observed.map(|observed| observed.observation) {
            Some(Observation::Request(Message { code, .. })) => self.asked = Some(code),
            Some(Observation::TooLong { code, .. }) if is_request => self.asked = Some(code),
            Some(Observation::Answer { message, .. }) => {
                let announced = message.decode::<ProcessEnvironment>();
                let len = announced.ok().map(|environment| usize::try_from(environment.incoming_bytes));
                self.announced = len.and_then(Result::ok).unwrap_or(0);
            }
            Some(Observation::Continuation(Some(Continuation::Counted))) => {
                return Ok(Frame::environment(bytes, self.announced));
            }
            _ => {}
        }
        let frame = Frame::new(bytes, answer_to.or(self.asked));
        // The rest of a message that is longer than the buffer.
        while let Some(rest) = frame.bytes.get(seen..).filter(|rest| !rest.is_empty()) {
            seen = seen.saturating_add(self.observe.supply(direction, rest).0);
        }
        Ok(frame)
    }
}
