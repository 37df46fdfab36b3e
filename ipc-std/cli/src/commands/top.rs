//! `top`: where a process spends its time, now.
mod json;
mod message;
mod rates;
mod screen;
mod session;
mod view;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use dotnet_ipc_sans_io::syntax::durations;
use ipc_std::Stopper;
use nettrace_analysis::live::Live;

use self::json::TopPeriod;
use self::message::{Message, Period};
use self::rates::rates;
use self::screen::Screen;
use self::view::View;
use crate::args::frame_args::FrameArgs;
use crate::output::live_stdout::LiveStdout;
use crate::output::stdout::to_open_stdout;
use crate::process::connection_args::ConnectionArgs;
use crate::process::process_name;
use crate::process::target::{Target, TargetArgs};
use crate::run::signals;
use crate::run::{Failure, Globals};
use crate::terminal::full_screen::{self, FullScreen};
use crate::terminal::screen_table::Request;
use crate::text::printable::json_line;

/// Show what a process does now: its functions, threads, collections, allocations and exceptions
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help("Give up after DURATION when starting the session, and again when ending it [default: 10s, 2m]")))]
#[command(after_help = include_str!("top.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// End after DURATION, instead of with Ctrl-C
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    duration: Option<Duration>,
    /// Show threads instead of functions
    #[arg(long, conflicts_with = "json")]
    threads: bool,
    /// Sort the functions by this share
    #[arg(long, value_name = "SHARE", default_value = "self")]
    by: TopOrder,
    /// Count all samples, not only those of threads in managed code
    #[arg(long)]
    wall: bool,
    /// Show the shares and rates since the start, not those of the last second
    #[arg(long)]
    since_start: bool,
    /// Show methods without module and arguments
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    frames: FrameArgs,
    /// Without a terminal, show N functions or threads
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TopOrder {
    #[value(name = "self", alias = "exclusive")]
    Own,
    #[value(alias = "inclusive")]
    Total,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (client, wire_log) = args.connection.session_client(args.target.target())?;
    let (sender, messages) = mpsc::sync_channel(MESSAGES);
    let is_running = Arc::new(AtomicBool::new(false));
    signals::handle({
        let (messages, is_running, is_json) = (sender.clone(), Arc::clone(&is_running), globals.json);
        let limits = *client.timeouts();
        // The handler does not wait. If the main thread is blocked and the queue is full, the signal ends the tool.
        move |_| {
            let stops = is_running.swap(false, Ordering::SeqCst) && messages.try_send(Message::Stop).is_ok();
            if stops {
                signals::explain_wait(is_json, &limits);
            }
            stops
        }
    })?;
    let session = session::start(&client)?;
    let stopper = session.stopper();
    let view = View {
        threads: args.threads,
        by_total: args.by == TopOrder::Total,
        wall: args.wall,
        since_start: args.since_start,
        short: args.short,
        exact: args.frames.raw,
    };
    let mut live = Live::default();
    args.frames.prepare(live.names_mut());
    // There is no address to name yet, so this reports a file that cannot be read.
    args.frames.names.symbols.name_native(live.names_mut())?;
    if args.frames.raw {
        live.keep_all_frames();
    }
    let process_id = args.target.target().process_id();
    let mut display = if full_screen::is_available() && !globals.json {
        let screen = Screen { view, title: title(args.target.target()), ..Screen::default() };
        let keys = sender.clone();
        let take = move |key: Option<_>| keys.send(key.map_or(Message::Resized, Message::Key)).is_ok();
        let terminal = FullScreen::enter(take)?;
        Display::Screen(terminal, Box::new(screen))
    } else {
        LiveStdout::begin()?;
        Display::Text { view, top: args.top, is_silent: false, is_without_samples: false }
    };
    is_running.store(true, Ordering::SeqCst);
    let frames = args.frames.clone();
    session::read_in_background(client, session, live, process_id, sender, args.since_start, frames)?;
    let duration = args.duration;
    let mut shown = Loop { messages, duration, deadline: None, stopper, is_running, process_id, globals };
    let shown = shown.run(&mut display);
    drop(display);
    shown?;
    wire_log.check()
}

/// Returns the name and the number of a process.
fn title(target: Target<'_>) -> String {
    match target {
        Target::ProcessId(process_id) => match process_name::system_name(process_id) {
            Some(name) => format!("{name} ({process_id})"),
            None => format!("process {process_id}"),
        },
        Target::Name(name) => name.to_owned(),
        Target::Socket(path) => path.display().to_string(),
    }
}

/// How many messages can wait while standard output blocks: few, because one period can have thousands of functions.
const MESSAGES: usize = 16;

/// Where periods are shown.
enum Display {
    Screen(FullScreen, Box<Screen>),
    /// Standard output.
    Text {
        view: View,
        top: usize,
        /// Whether a message about missing events was written.
        is_silent: bool,
        /// Whether a message about missing samples was written.
        is_without_samples: bool,
    },
}

/// The loop of the main thread, which shows the periods and applies the keys.
struct Loop<'g> {
    messages: Receiver<Message>,
    duration: Option<Duration>,
    /// The end of `duration`; `None` before the duration has begun.
    deadline: Option<Instant>,
    stopper: Stopper,
    /// Whether a signal stops the session. While this is false, a signal ends the tool.
    is_running: Arc<AtomicBool>,
    /// The process of the command line, if it has one.
    process_id: Option<u32>,
    globals: &'g Globals,
}

impl Loop<'_> {
    /// Runs until the session has ended.
    fn run(&mut self, display: &mut Display) -> Result<(), Failure> {
        let mut shown = self.draw(display);
        while shown.is_ok() {
            match self.next() {
                Some(Message::Ended(result)) => return result,
                Some(Message::Stop) | None => break,
                Some(Message::Named) => {
                    self.deadline = self.duration.and_then(|duration| Instant::now().checked_add(duration));
                }
                Some(message) => match self.show(message, display) {
                    Ok(Request::Quit) => break,
                    Ok(Request::Redraw) => shown = self.draw(display),
                    Ok(Request::Nothing) => {}
                    Err(failure) => shown = Err(failure),
                },
            }
        }
        self.is_running.store(false, Ordering::SeqCst);
        self.stopper.stop();
        // The usual screen returns before the session has ended, so that the user does not see a frozen screen.
        full_screen::restore();
        let ended = loop {
            match self.messages.recv() {
                Ok(Message::Ended(result)) => break result,
                Ok(message @ Message::Period(_))
                    if matches!(display, Display::Text { .. }) && shown.is_ok() =>
                {
                    shown = self.show(message, display).map(|_| ());
                }
                Ok(_) => {}
                Err(_) => break Ok(()),
            }
        };
        shown.and(ended)
    }

    /// Waits for the next message; `None` at the deadline.
    fn next(&self) -> Option<Message> {
        let Some(deadline) = self.deadline else { return self.messages.recv().ok() };
        self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
    }

    fn draw(&self, display: &mut Display) -> Result<(), Failure> {
        let Display::Screen(terminal, screen) = display else { return Ok(()) };
        let (width, height) = terminal.size();
        let drawn = terminal.draw(&screen.lines(width, height));
        drawn.map_err(|e| Failure::io("cannot write to the terminal", &e))
    }

    fn show(&self, message: Message, display: &mut Display) -> Result<Request, Failure> {
        match (message, display) {
            (Message::Period(period), Display::Screen(_, screen)) => {
                screen.local = self.is_local(&period);
                screen.take(*period);
            }
            (Message::Period(period), Display::Text { view, top, is_silent, is_without_samples }) => {
                *is_silent = false;
                if let (Some(why), false) = (screen::remark(&period), *is_without_samples) {
                    *is_without_samples = true;
                    self.globals.note(why);
                }
                return self.write(&period, *view, *top);
            }
            (Message::Silent(silent, is_suspended), Display::Screen(_, screen)) => {
                (screen.silent, screen.is_suspended) = (Some(silent), is_suspended);
            }
            (
                Message::Silent(_, is_suspended),
                Display::Text { is_silent: is_silent @ false, is_without_samples: false, .. },
            ) => {
                *is_silent = true;
                self.globals.note(if is_suspended { screen::SUSPENDED } else { screen::SILENT });
            }
            (Message::Key(key), Display::Screen(_, screen)) => return Ok(screen.key(key)),
            _ => {}
        }
        Ok(Request::Redraw)
    }

    /// Returns whether this system shows the threads of the process by the same numbers as the process itself.
    fn is_local(&self, period: &Period) -> bool {
        self.process_id.is_some() && period.process_id == self.process_id
    }

    /// Writes a period to standard output. A reader that closed the pipe wants no more.
    fn write(&self, period: &Period, view: View, top: usize) -> Result<Request, Failure> {
        let is_open = to_open_stdout(|out| {
            if self.globals.json {
                writeln!(out, "{}", json_line(&TopPeriod::new(period, view, self.is_local(period), top)))
            } else {
                self.write_table(period, view, top, out)
            }
        })?;
        Ok(if is_open { Request::Nothing } else { Request::Quit })
    }

    fn write_table(&self, period: &Period, view: View, top: usize, out: &mut dyn Write) -> io::Result<()> {
        let view = view.shown(period);
        let rows = view.rows(period, self.is_local(period), 0, top);
        write!(
            out,
            "{}, {} lost\n{}",
            rates(view.activity(period), view.cores(period)).join(", "),
            view.lost(period),
            view.heading(usize::MAX)
        )?;
        writeln!(out, " ({})", view.basis())?;
        rows.iter().try_for_each(|row| writeln!(out, "{}", view::row_line(row, usize::MAX, view.exact)))?;
        writeln!(out)
    }
}
