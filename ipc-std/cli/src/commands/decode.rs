//! `decode`: shows messages field by field.
use std::collections::HashMap;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use dotnet_ipc_syntax::decode_input::{Input, Piece};
use dotnet_ipc_syntax::hex;
use dotnet_ipc_syntax::unsigned::unsigned;
use ipc_proto::types::ProcessEnvironment;
use ipc_proto::{Code, Command, CommandInfo, GetProcessEnvironment, Message, Request};

use crate::input::source::Source;
use crate::output::failure::{Failure, Kind};
use crate::output::globals::Globals;
use crate::output::stdout::to_stdout;

mod frame;

use frame::{Frame, FrameKind};

/// Show messages field by field, with the offset of every byte
#[derive(Debug, clap::Args)]
#[command(after_help = "\
HEX is pairs of digits, separated or not by blanks, `:`, `|`, `,` and `0x`. FILE
contains messages as bytes, or as digits with comments after `#`, or is a file
of --wire-log, which contains the command of every response. Offsets count from
the start of a message.

For malformed bytes the output shows the valid fields, and points at the error
with the name of its field; the exit status is 6. A value that runtimes refuse
in a well-formed request is reported, with exit status 0. A reserved number
other than 0 is marked; runtimes ignore it.

Examples:
  dotnet-ipc decode 444f544e45545f4950435f56310014000408 0000
  dotnet-ipc decode answer.bin --answer-to GetProcessInfo3
  dotnet-ipc info 4242 --wire-log log.jsonl; dotnet-ipc decode log.jsonl
  xxd -p message.bin | dotnet-ipc decode - --json | jq .fields")]
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
    let mut decoder = Decoder { answer_to: args.answer_to, asked: HashMap::new() };
    let mut decoded = Decoded::default();
    let mut understood = Ok(());
    // Each frame is written as soon as it is decoded, field by field, because a frame can have millions of fields.
    to_stdout(|out| {
        understood =
            input.for_each_piece(|piece| decoder.decode(piece, |frame| decoded.show(frame, globals, out)))?;
        Ok(())
    })?;
    understood.map_err(|e| Failure::new(Kind::Usage, e))?;
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

/// Parses a command by one of its two names or its code.
fn parse_command(text: &str) -> Result<Code, String> {
    let named = |row: &&CommandInfo| {
        [row.name, row.specification_name].iter().any(|name| name.eq_ignore_ascii_case(text))
    };
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let code = || {
        let digits = unsigned(digits).filter(|digits| digits.len() == 4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let found = Request::ALL.iter().find(named).map(|row| row.code);
    found.or_else(|| code().map(Code)).ok_or_else(|| {
        let names: Vec<_> = Request::ALL.iter().map(|row| row.name).collect();
        format!("no such command: give a code such as 0x0408, or one of {}", names.join(", "))
    })
}

/// Returns the bytes to decode, from the operands or from standard input.
fn input(args: &Args) -> Result<Input, Failure> {
    let (name, bytes) = match args.input.as_slice() {
        [] if io::stdin().is_terminal() => {
            return Err(Failure::new(Kind::Usage, "no messages: pass digits or a file"));
        }
        [] => read("-")?,
        [one] if one == "-" || Path::new(one).exists() => read(one)?,
        all => match hex::parse(&all.join(" ")) {
            Ok(bytes) => return Ok(Input::Messages(bytes)),
            Err(_) if all.len() == 1 && all.iter().any(|one| one.contains(['/', '.'])) => {
                return Err(Failure::new(Kind::Io, format!("there is no file {}", all.join(" "))));
            }
            Err(e) => return Err(Failure::new(Kind::Usage, format!("{e}, nor is there such a file"))),
        },
    };
    Input::recognise(&name, bytes).map_err(|e| Failure::new(Kind::Usage, format!("{name}: {e}")))
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
    /// The last request on each connection.
    asked: HashMap<String, Code>,
}

impl Decoder {
    fn decode(
        &mut self,
        piece: Piece<'_>,
        mut show: impl FnMut(&Frame<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let connection = piece.logged.map(|logged| logged.connection.to_string()).unwrap_or_default();
        let (mut at, mut announced) = (0, None);
        loop {
            let rest = piece.bytes.get(at..).unwrap_or_default();
            let mut frame = match announced.take() {
                Some(len) => Frame::environment(rest, len),
                None => Frame::new(rest, self.answer_to.or_else(|| self.asked.get(&connection).copied())),
            };
            (frame.at, frame.logged) = (at, piece.logged);
            if let (FrameKind::Request, Some(code)) = (frame.kind, frame.command) {
                self.asked.insert(connection.clone(), code);
            }
            if frame.kind == FrameKind::Ok && frame.command == Some(GetProcessEnvironment::CODE) {
                let payload = frame.bytes.get(Message::HEADER_LEN..).unwrap_or_default();
                let answer: Option<ProcessEnvironment> = ipc_proto::wire::decode(payload).ok();
                announced = answer.and_then(|answer| usize::try_from(answer.incoming_bytes).ok());
            }
            show(&frame)?;
            at = at.saturating_add(frame.bytes.len());
            if at >= piece.bytes.len() {
                return Ok(());
            }
        }
    }
}
