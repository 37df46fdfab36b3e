//! `Live`: the loop of `counters` over the sessions of processes.
use core::ops::ControlFlow;
use std::time::Instant;

use super::schedule::{Schedule, is_due};
use super::show::{Origin, Show};
use crate::counters::feed::{Feed, Next};
use crate::counters::report::{Process, Report};
use crate::process::wire_log::WireLog;
use crate::run::Failure;
use crate::terminal::full_screen;

/// The loop that shows the samples of processes until the end.
pub(super) struct Live<'a> {
    show: Show<'a>,
    feed: Feed,
    schedule: Schedule,
    /// How the session of the only process ended.
    ended: Result<(), Failure>,
    /// The failure if a condition can never hold.
    possible: Result<(), Failure>,
    /// Whether a key ended the command.
    is_quit: bool,
}

impl<'a> Live<'a> {
    pub(super) fn new(show: Show<'a>, feed: Feed, mut schedule: Schedule) -> Self {
        if show.origin == Origin::AllProcesses {
            // No counter is reported as missing: a process that has it can still start.
            schedule.first = None;
        }
        Self { show, feed, schedule, ended: Ok(()), possible: Ok(()), is_quit: false }
    }

    pub(super) fn run(mut self, wire_log: &WireLog) -> Result<(), Failure> {
        while self.step()?.is_continue() {}
        // Sessions can take long to stop, so the usual screen returns first. It also shows the messages that follow.
        full_screen::restore();
        let stopped = self.feed.end();
        let checked = self.feed.check();
        let Self { mut show, ended, possible, is_quit, .. } = self;
        if let (Some(_), Err(failure)) = (&show.held, &checked) {
            show.globals.note(failure.message());
        }
        if possible.is_ok() {
            show.note_absent();
        }
        let mut result = ended;
        if show.samples == 0 && result.is_ok() {
            // The end of the session states why there were no samples, for example that the runtime is suspended.
            result = stopped;
        }
        result = result.and(possible).and(checked);
        let is_empty = show.samples == 0 && show.written.is_ok() && !is_quit;
        // With `--all` there may be no process.
        let is_named = show.origin == Origin::Process || !show.missing.is_empty();
        if is_empty && is_named && show.watches.is_empty() && result.is_ok() {
            result = Err(show.nothing_found());
        }
        show.finish(result)?;
        wire_log.check()
    }

    /// Takes the next report, or acts at a time of the schedule. Breaks at the end.
    fn step(&mut self) -> Result<ControlFlow<()>, Failure> {
        let flow = match self.feed.next(self.schedule.next())? {
            Next::Report(process, Report::Ended(ended)) => {
                self.end_of_process(&process, ended);
                ControlFlow::Continue(())
            }
            Next::Report(process, report) => {
                let flow = self.show.report(&process, report);
                if self.show.samples > 0 {
                    self.schedule.end_waiting();
                }
                flow
            }
            Next::Deadline => self.deadline(),
            Next::Finished => ControlFlow::Break(()),
        };
        if flow.is_break() {
            return Ok(flow);
        }
        if !self.show.watches.is_empty() && self.show.origin == Origin::Process {
            self.possible = self.show.check_possible(false);
            if self.possible.is_err() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let flushed = self.show.output.flush();
        Ok(self.show.check_written(flushed))
    }

    fn end_of_process(&mut self, process: &Process, ended: Result<(), Failure>) {
        if ended.is_err() {
            self.show.output.ended(process, None);
            self.show.watches.iter_mut().for_each(|watch| watch.remove(process));
        }
        match ended {
            Err(failure) if self.show.origin == Origin::AllProcesses => {
                let prefix = self.show.prefix(process);
                self.show.note(&format!("{prefix}{failure}"));
            }
            ended => self.ended = ended,
        }
    }

    fn deadline(&mut self) -> ControlFlow<()> {
        let now = Instant::now();
        if is_due(&mut self.schedule.end, now) {
            // The first samples come after one interval.
            match self.schedule.wait_for_samples(now).filter(|_| self.show.samples == 0) {
                Some(end) => self.schedule.end = Some(end),
                None => self.feed.stop(),
            }
        }
        if is_due(&mut self.schedule.first, now) {
            self.possible = self.show.check_possible(true);
            if self.possible.is_err() {
                return ControlFlow::Break(());
            }
            self.show.note_missing();
        }
        if is_due(&mut self.schedule.tick, now) {
            self.schedule.tick = now.checked_add(self.schedule.pace);
            self.show.note_left_out();
            self.is_quit = self.show.output.keys();
            if self.is_quit {
                return ControlFlow::Break(());
            }
            let written = self.show.output.tick();
            return self.show.check_written(written);
        }
        ControlFlow::Continue(())
    }
}
