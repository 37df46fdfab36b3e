//! `Screen`: the lines that `top` shows for a period, and its keys. This code needs no terminal.
use core::cmp::Reverse;
use core::time::Duration;
use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent};
use indicatif::{DecimalBytes, HumanCount};
use nettrace_analysis::live::{Activity, FunctionActivity, ThreadActivity};
use nettrace_analysis::samples::{CpuCauses, Weight};
use unicode_width::UnicodeWidthStr;

use super::message::Period;
use crate::output::columns::{cut_end, padded};
use crate::output::full_screen::{Line, Style};
use crate::output::function_name::{FunctionName, mark};
use crate::output::printable::printable;
use crate::output::screen_table::{Column, Columns, Footer, Request, ScreenTable, TableFrame};
use crate::process::system_threads;
use crate::stacks::cpu_lines::{HIDES_RUNNING, NOTABLE, is_nearly_idle};

/// What to show of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct View {
    /// Threads instead of functions.
    pub(super) threads: bool,
    /// Functions sorted by the total share instead of their own one; threads sorted by id.
    pub(super) by_total: bool,
    /// All samples instead of those in managed code.
    pub(super) wall: bool,
    /// Since the start instead of the last second.
    pub(super) since_start: bool,
    /// Methods without module and arguments.
    pub(super) short: bool,
    /// Methods with their exact names.
    pub(super) exact: bool,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// In percent. Of a function, its own and its total share. Of a thread, the managed part of its samples, and its
    /// part of the managed samples of all threads.
    pub(super) shares: [f64; 2],
    /// The id of a thread; `None` for a function.
    pub(super) id: Option<u64>,
    pub(super) name: Option<String>,
    /// The function. Control characters in its name are not escaped.
    pub(super) function: Arc<str>,
    /// Whether it is code of the program.
    pub(super) is_own: bool,
}

impl View {
    /// Returns the numbers to show: since the start, or of the period.
    pub(super) const fn activity(self, period: &Period) -> &Activity {
        if self.since_start { &period.total } else { &period.last }
    }

    /// Returns the cores that the process uses by the system, in the time of [`Self::activity`].
    pub(super) const fn cores(self, period: &Period) -> Option<f64> {
        let [last, total] = period.cores;
        if self.since_start { total } else { last }
    }

    /// Returns the view of a period whose samples may not tell which threads run: all samples then.
    pub(super) fn shown(self, period: &Period) -> Self {
        Self { wall: self.wall || self.activity(period).hides_running, ..self }
    }

    /// Returns up to `len` rows after the first `skip` ones.
    pub(super) fn rows(self, period: &Period, local: bool, skip: usize, len: usize) -> Vec<Row> {
        let activity = self.activity(period);
        let weigh = |weight| self.weigh(weight);
        if self.threads {
            let mut threads: Vec<_> = activity.threads.iter().collect();
            if !self.by_total {
                threads.sort_by_key(|thread| Reverse((weigh(thread.samples), thread.samples.running)));
            }
            let process_id = period.process_id.filter(|_| local);
            let row = |thread: &&ThreadActivity| self.thread(thread, activity, process_id);
            return threads.iter().skip(skip).take(len).map(row).collect();
        }
        let total = weigh(activity.samples);
        let mut functions: Vec<_> = activity
            .functions
            .iter()
            .map(|function| (weigh(function.exclusive), weigh(function.inclusive), function))
            .filter(|(_, inclusive, _)| *inclusive > 0)
            .collect();
        functions.sort_by_key(|(exclusive, inclusive, FunctionActivity { name, is_own, .. })| {
            let [first, second] = if self.by_total { [inclusive, exclusive] } else { [exclusive, inclusive] };
            (Reverse((*first, *is_own, *second)), Arc::clone(name))
        });
        let row = |(exclusive, inclusive, function): &(u64, u64, &FunctionActivity)| Row {
            shares: [percent(*exclusive, total), percent(*inclusive, total)],
            id: None,
            name: None,
            function: self.name(&function.name),
            is_own: function.is_own,
        };
        functions.iter().skip(skip).take(len).map(row).collect()
    }

    /// Returns the number of rows.
    pub(super) fn len(self, period: &Period) -> usize {
        let Activity { threads, functions, .. } = self.activity(period);
        let is_row = |function: &&FunctionActivity| self.weigh(function.inclusive) > 0;
        if self.threads { threads.len() } else { functions.iter().filter(is_row).count() }
    }

    /// Returns how many of these samples count.
    const fn weigh(self, samples: Weight) -> u64 {
        if self.wall { samples.total() } else { samples.running }
    }

    fn thread(self, thread: &ThreadActivity, activity: &Activity, process_id: Option<u32>) -> Row {
        let ThreadActivity { id, name, roles, samples, function, is_own, .. } = thread;
        let name = Some(name.clone()).filter(|name| !name.is_empty());
        Row {
            shares: [
                percent(samples.running, samples.total()),
                percent(samples.running, activity.samples.running),
            ],
            id: Some(*id),
            name: process_id.and_then(|process| system_threads::own_name(process, *id, *roles)).or(name),
            function: self.name(function),
            is_own: *is_own,
        }
    }

    fn name(self, name: &Arc<str>) -> Arc<str> {
        if self.short { nettrace_analysis::names::short_name(name).into() } else { Arc::clone(name) }
    }

    /// Returns the headings of the columns.
    pub(super) fn heading(self, width: usize) -> String {
        let cells =
            if self.threads { ["RUN %", "SHARE %", "THREAD"] } else { ["SELF %", "TOTAL %", "FUNCTION"] };
        Columns { gap: GAP, columns: &FUNCTION_COLUMNS }.heading(&cells, width)
    }

    /// Returns a text about the whole of which shares are parts.
    pub(super) fn basis(self) -> String {
        let of = if self.wall { "all samples" } else { "samples in managed code" };
        format!("{of}, {}", if self.since_start { "since the start" } else { "last second" })
    }
}

fn percent(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 * 100.0 / all as f64 }
}

/// Returns the numbers of a period that are not shares of functions, as texts.
pub(super) fn rates(activity: &Activity, cores: Option<f64>) -> Vec<String> {
    let per_second = |count| activity.per_second(count);
    let mut rates = Vec::new();
    rates.extend(cores.map(|cores| format!("{cores:.2} cores")));
    let threads = activity.threads.len();
    rates.push(match activity.hides_running {
        true => format!("{threads} threads"),
        false => format!("{:.2} of {threads} threads run", activity.running_threads()),
    });
    rates.push(format!(
        "GC paused {:.1} %, {:.1}/s",
        activity.paused_share() * 100.0,
        per_second(activity.collections)
    ));
    let CpuCauses { total, pool_spin, session, .. } = activity.causes;
    let is_idle = is_nearly_idle(total, activity.running_threads());
    if is_idle && activity.rounds > 0 && !activity.hides_running {
        rates.push("nearly idle".to_owned());
    }
    for (part, what) in [(pool_spin, "spin of idle pool"), (session, "work for this session")] {
        let share = percent(part, total);
        if share >= NOTABLE && !is_idle {
            rates.push(format!("{share:.0} % {what}"));
        }
    }
    rates.push(format!("{}/s allocated", DecimalBytes(allocated_per_second(activity))));
    rates.push(format!("{:.0} exceptions/s", per_second(activity.exceptions)));
    rates
}

/// The width below which threads are shown without names.
const NARROW: usize = 80;

fn allocated_per_second(activity: &Activity) -> u64 {
    let bytes = u128::from(activity.allocated).saturating_mul(1_000_000_000);
    u64::try_from(bytes.checked_div(activity.span.into()).unwrap_or_default()).unwrap_or(u64::MAX)
}

/// The columns of two shares and a function, and the spaces between them.
const FUNCTION_COLUMNS: [Column; 3] = [FIRST_SHARE, SECOND_SHARE, Column::Rest(0)];
const FIRST_SHARE: Column = Column::Right(8);
const SECOND_SHARE: Column = Column::Right(7);
const GAP: usize = 2;

/// Returns a row as a line of this width. A mark for code of the program is in the space before the function.
pub(super) fn row_line(row: &Row, width: usize, is_exact: bool) -> String {
    let [first, second] = row.shares.map(|share| format!("{share:.2}"));
    let thread = match (row.id, row.name.as_ref().filter(|_| width >= NARROW)) {
        (Some(id), Some(name)) => Some(padded(&format!("{id} ({})", printable(name)), 24)),
        (Some(id), None) => Some(padded(&id.to_string(), 8)),
        (None, _) => None,
    };
    let cells: Vec<_> = [&first, &second].into_iter().chain(&thread).map(String::as_str).collect();
    let columns = [FIRST_SHARE, SECOND_SHARE, Column::Left(0)];
    let columns = columns.get(..cells.len()).unwrap_or_default();
    let mut line = Columns { gap: GAP, columns }.row(&cells, width);
    line.push(' ');
    line.push(mark(row.is_own));
    let name = FunctionName::new(&row.function, is_exact).fit(width.saturating_sub(line.width()));
    cut_end(&format!("{line}{name}"), width)
}

/// The screen of `top`.
#[derive(Debug, Default)]
pub(super) struct Screen {
    pub(super) view: View,
    /// The name of the process.
    pub(super) title: String,
    /// Whether this system shows the process by the number that it has itself. If so, it knows the names of its
    /// threads.
    pub(super) local: bool,
    pub(super) period: Option<Period>,
    /// How long no event has arrived, if that is longer than a period.
    pub(super) silent: Option<Duration>,
    /// Whether no event has arrived because the runtime is suspended.
    pub(super) is_suspended: bool,
    pub(super) table: ScreenTable,
}

impl Screen {
    /// Takes the numbers of the next period, unless the screen is paused.
    pub(super) fn take(&mut self, period: Period) {
        self.silent = None;
        if !self.table.is_paused {
            self.period = Some(period);
        }
    }

    /// Applies a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Request {
        let view = &mut self.view;
        self.table.key(key, |table, code| {
            match code {
                KeyCode::Char('f') => (view.threads, table.skip) = (false, 0),
                KeyCode::Char('t') => (view.threads, table.skip) = (true, 0),
                KeyCode::Tab => (view.threads, table.skip) = (!view.threads, 0),
                KeyCode::Char('s') => view.by_total = !view.by_total,
                KeyCode::Char('w') => view.wall = !view.wall,
                KeyCode::Char('a') => view.since_start = !view.since_start,
                KeyCode::Char('n') => view.short = !view.short,
                _ => return false,
            }
            true
        })
    }

    /// Returns the lines of a screen of this size: at most `height`, none wider than `width`.
    pub(super) fn lines(&mut self, width: usize, height: usize) -> Vec<Line> {
        /// Some lines are shown only if this many lines remain for the table.
        const TABLE: usize = 5;
        let mut lines = Vec::new();
        let mut head = vec![printable(&self.title).into_owned()];
        let Some(period) = &self.period else {
            let wait = match self.silent {
                Some(_) if self.is_suspended => SUSPENDED,
                Some(_) => SILENT,
                None => "Reading the names of methods",
            };
            lines.extend([
                (Style::Bold, cut_end(&head.concat(), width)),
                (Style::Plain, cut_end(wait, width)),
            ]);
            lines.truncate(height);
            return lines;
        };
        let shown = self.view.shown(period);
        head.extend(rates(shown.activity(period), shown.cores(period)));
        if let Some(silent) = self.silent {
            head.insert(1, format!("no events for {} s", silent.as_secs()));
        }
        if self.table.is_paused {
            head.insert(1, "PAUSED".to_owned());
        }
        let most = height.saturating_sub(TABLE).clamp(if height < TABLE { 1 } else { 2 }, 4);
        lines.extend(wrapped(&head, width, most).into_iter().map(|line| (Style::Bold, line)));
        let [lost, all] = period.lost;
        if all > 0 {
            let (lost, all) = (HumanCount(lost), HumanCount(all));
            let line = format!("LOST EVENTS: {lost}, {all} since the start. The numbers are too low");
            lines.push((Style::Reverse, cut_end(&line, width)));
        }
        if let Some(why) = remark(period) {
            lines.push((Style::Reverse, cut_end(why, width)));
        }
        if height > lines.len().saturating_add(TABLE) {
            lines.push((Style::Plain, String::new()));
        }
        let mut heading = shown.heading(width);
        let basis = shown.basis();
        let space = width.saturating_sub(heading.width()).saturating_sub(basis.width());
        if space > 1 {
            heading = format!("{heading}{}{basis}", " ".repeat(space));
        }
        let has_footer = height > lines.len().saturating_add(TABLE - 1);
        let footer = match has_footer {
            true => Footer::AtBottom(wrapped(&self.footer(), width, 1).concat()),
            false => Footer::None,
        };
        let frame = TableFrame { head: lines, heading, footer };
        let (view, local) = (shown, self.local);
        self.table.lines((width, height), frame, view.len(period), |skip, room| {
            let rows = view.rows(period, local, skip, room);
            rows.iter().map(|row| row_line(row, width, view.exact)).collect()
        })
    }

    /// Returns the keys with what they do now.
    fn footer(&self) -> Vec<String> {
        let View { threads, by_total, wall, since_start, short, .. } = self.view;
        let sort = match (threads, by_total) {
            (false, false) => "s by total",
            (false, true) => "s by self",
            (true, false) => "s by thread",
            (true, true) => "s by run",
        };
        let keys = [
            "q quit",
            if threads { "f functions" } else { "t threads" },
            sort,
            if since_start { "a last second" } else { "a since start" },
            if wall { "w managed only" } else { "w with waits" },
            if self.table.is_paused { "p continue" } else { "p pause" },
            if short { "n full names" } else { "n short names" },
        ];
        keys.map(ToOwned::to_owned).into()
    }
}

/// The text that the user reads while no events arrive.
pub(super) const SILENT: &str = "The runtime sends no events: it is stopped, or compiled ahead of time";

/// The text for a runtime that is suspended.
pub(super) const SUSPENDED: &str = "The runtime is suspended: `dotnet-ipc resume` starts its program";

/// Returns the text that explains why no functions and threads are shown, or all of them.
pub(super) const fn remark(period: &Period) -> Option<&'static str> {
    match period {
        Period { is_suspended: true, .. } => Some(SUSPENDED),
        period if period.has_no_samples() => Some(NO_SAMPLES),
        Period { total: Activity { hides_running: true, .. }, .. } => Some(HIDES_RUNNING),
        _ => None,
    }
}

const NO_SAMPLES: &str = "The runtime sends no samples of threads: a program that was compiled ahead of time \
                                     sends them since .NET 10";

/// Joins parts to lines of this width. Parts that do not fit are left out, except the first part.
fn wrapped(parts: &[String], width: usize, most: usize) -> Vec<String> {
    const SPACE: &str = "   ";
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let has_room = lines.len() < most;
        match lines.last_mut() {
            Some(line) if line.width().saturating_add(part.width()) <= width.saturating_sub(SPACE.len()) => {
                line.push_str(SPACE);
                line.push_str(part);
            }
            Some(_) if !has_room => {}
            _ => lines.push(cut_end(part, width)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;

    use super::*;

    fn weight(running: u64, waiting: u64) -> Weight {
        Weight { running, waiting, count: 1 }
    }

    fn function(name: &str, exclusive: Weight, inclusive: Weight) -> FunctionActivity {
        let mut function = FunctionActivity::default();
        (function.name, function.exclusive, function.inclusive) = (name.into(), exclusive, inclusive);
        function
    }

    fn thread(id: u64, samples: Weight, function: &str) -> ThreadActivity {
        let mut thread = ThreadActivity::default();
        (thread.id, thread.samples, thread.function) = (id, samples, function.into());
        thread
    }

    const SPIN: &str = "Shop!Shop.Engine.Spin(int32)";
    const LONG: &str = "System.Private.CoreLib!System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart(class System.Object)";
    const HOSTILE: &str = "Evil!\u{1b}[2J\u{202e}.\u{597d}\u{597d}()";

    /// Ten threads, each sampled 100 times in half a second.
    fn screen() -> Screen {
        let mut last = Activity::default();
        (last.span, last.rounds, last.samples) = (500_000_000, 100, weight(200, 800));
        last.functions = vec![
            function(LONG, weight(0, 0), weight(160, 700)),
            function(SPIN, weight(150, 0), weight(150, 0)),
            function("Shop!Shop.Queue.Wait()", weight(0, 700), weight(0, 700)),
            function(HOSTILE, weight(50, 100), weight(50, 100)),
        ];
        last.threads = (1..=10)
            .zip((90..100).rev())
            .map(|(id, waiting)| thread(id, weight(id, waiting), SPIN))
            .collect();
        (last.collections, last.paused) = (3, 10_000_000);
        (last.allocated, last.exceptions) = (5_000_000, 7);
        let mut total = last.clone();
        (total.span, total.samples) = (5_000_000_000, weight(2_000, 8_000));
        let period = Period { last, total, lost: [0, 0], process_id: Some(4242), ..Period::default() };
        Screen { title: "Shop (4242)".to_owned(), period: Some(period), ..Screen::default() }
    }

    fn text(screen: &mut Screen, width: usize, height: usize) -> String {
        let lines = screen.lines(width, height);
        assert!(lines.len() <= height, "{lines:?}");
        for (_, line) in &lines {
            assert!(line.width() <= width, "{line}");
            assert!(!line.chars().any(crate::output::printable::is_control), "{line:?}");
        }
        lines.iter().map(|(_, line)| format!("{}\n", line.trim_end())).collect()
    }

    fn press(screen: &mut Screen, key: char) -> Request {
        screen.key(KeyCode::Char(key).into())
    }

    #[test]
    fn a_usual_screen() {
        let mut screen = screen();
        assert_eq!(
            text(&mut screen, 80, 24),
            "\
Shop (4242)   2.00 of 10 threads run   GC paused 2.0 %, 6.0/s
10.00 MB/s allocated   14 exceptions/s

  SELF %  TOTAL %  FUNCTION                 samples in managed code, last second
   75.00    75.00  Shop!Shop.Engine.Spin(int32)
   25.00    25.00  Evil!\\u{1b}[2J\\u{202e}.\u{597d}\u{597d}()
    0.00    80.00  …Threading.PortableThreadPool+WorkerThread.WorkerThreadStart
"
            .to_owned()
                + &"\n".repeat(16)
                + "q quit   t threads   s by total   a since start   w with waits   p pause\n"
        );
        press(&mut screen, 't');
        let threads = text(&mut screen, 80, 24);
        assert!(threads.contains("   RUN %  SHARE %  THREAD"), "{threads}");
        assert!(threads.contains("   10.00     5.00  10        Shop!Shop.Engine.Spin(int32)"), "{threads}");
    }

    #[test]
    fn small_screens() {
        let mut screen = screen();
        assert_eq!(
            text(&mut screen, 40, 8),
            "\
Shop (4242)   2.00 of 10 threads run
GC paused 2.0 %, 6.0/s
10.00 MB/s allocated   14 exceptions/s
  SELF %  TOTAL %  FUNCTION
   75.00    75.00  Shop!Shop.Engine.Spin
   25.00    25.00  …\u{597d}\u{597d}
    0.00    80.00  …WorkerThreadStart
q quit   t threads   s by total
"
        );
        assert_eq!(
            text(&mut screen, 40, 5),
            "\
Shop (4242)   2.00 of 10 threads run
GC paused 2.0 %, 6.0/s   14 exceptions/s
  SELF %  TOTAL %  FUNCTION
   75.00    75.00  Shop!Shop.Engine.Spin
   25.00    25.00  …\u{597d}\u{597d}
"
        );
        for (width, height) in [(0, 0), (1, 1), (2, 3), (10, 2), (19, 9), (500, 200)] {
            for key in "ftswanp".chars() {
                press(&mut screen, key);
                text(&mut screen, width, height);
            }
        }
        screen.period = None;
        assert_eq!(text(&mut screen, 12, 1), "Shop (4242)\n");
    }

    /// Functions of the program have a mark, and come first among functions of equal share.
    #[test]
    fn own_functions() {
        let mut screen = screen();
        let activity = &mut screen.period.as_mut().unwrap().last;
        let mut own = function("Shop!Shop.Cart.Total()", weight(50, 0), weight(50, 0));
        own.is_own = true;
        activity.functions.push(own);
        activity.threads[0].is_own = true;
        let lines = text(&mut screen, 80, 24);
        let (own, other) = ("   25.00    25.00 *Shop!Shop.Cart.Total()\n", "   25.00    25.00  Evil!");
        assert!(lines.contains(&format!("{own}{other}")), "{lines}");
        press(&mut screen, 't');
        let threads = text(&mut screen, 80, 24);
        assert!(threads.contains("  1        *Shop!Shop.Engine.Spin(int32)\n"), "{threads}");
    }

    #[test]
    fn keys_change_the_view() {
        let mut screen = screen();
        let first = |screen: &mut Screen| {
            let text = text(screen, 200, 24);
            text.lines().nth(3).unwrap().to_owned()
        };
        let spin = "   75.00    75.00  Shop!Shop.Engine.Spin(int32)";
        assert_eq!(first(&mut screen), spin);
        press(&mut screen, 'n');
        assert_eq!(first(&mut screen), "   75.00    75.00  Shop.Engine.Spin");
        press(&mut screen, 'n');
        press(&mut screen, 's');
        assert_eq!(first(&mut screen), format!("    0.00    80.00  {LONG}"));
        press(&mut screen, 's');
        press(&mut screen, 'w');
        assert_eq!(first(&mut screen), "   70.00    70.00  Shop!Shop.Queue.Wait()");
        press(&mut screen, 'w');
        press(&mut screen, 'a');
        assert_eq!(first(&mut screen), "    7.50     7.50  Shop!Shop.Engine.Spin(int32)");
        press(&mut screen, 'a');
        screen.key(KeyCode::Tab.into());
        assert_eq!(first(&mut screen), "   10.00     5.00  10        Shop!Shop.Engine.Spin(int32)");
        press(&mut screen, 's');
        assert_eq!(first(&mut screen), "    1.00     0.50  1         Shop!Shop.Engine.Spin(int32)");
        // Scrolling ends when the last rows are on the screen.
        for _ in 0..100 {
            screen.key(KeyCode::Down.into());
        }
        assert!(text(&mut screen, 80, 9).contains("\n   10.00     5.00  10  "));
        screen.key(KeyCode::Home.into());
        assert!(text(&mut screen, 80, 9).contains("\n    1.00     0.50  1  "));
        // Functions that are not in the view are not rows.
        press(&mut screen, 'f');
        for _ in 0..100 {
            screen.key(KeyCode::Down.into());
        }
        assert!(text(&mut screen, 80, 5).contains("\n   75.00    75.00  Shop!"));
        for key in [KeyCode::Esc.into(), KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)] {
            assert_eq!(screen.key(key), Request::Quit);
        }
        assert_eq!((press(&mut screen, 'q'), press(&mut screen, 'x')), (Request::Quit, Request::Nothing));
    }

    #[test]
    fn the_cause_of_missing_samples_is_shown() {
        let mut screen = Screen { view: View::default(), ..Screen::default() };
        screen.silent = Some(Duration::from_secs(3));
        assert!(text(&mut screen, 120, 24).contains(SILENT));
        screen.is_suspended = true;
        assert!(text(&mut screen, 120, 24).contains(SUSPENDED));
        screen.take(Period { is_suspended: true, ..Period::default() });
        assert!(text(&mut screen, 120, 24).contains(SUSPENDED));
        screen.take(Period::default());
        assert!(text(&mut screen, 120, 24).contains(NO_SAMPLES));
    }

    #[test]
    fn lost_events_silence_and_pauses_are_shown() {
        let mut screen = screen();
        let other = || Period { lost: [1_000, 2_000], ..Period::default() };
        screen.take(other());
        let lost = "LOST EVENTS: 1,000, 2,000 since the start. The numbers are too low\n";
        assert!(text(&mut screen, 80, 24).contains(lost));
        assert!(text(&mut screen, 40, 6).contains("LOST EVENTS: 1,000, 2,000 since the sta…\n"));
        screen.silent = Some(Duration::from_secs(3));
        assert!(text(&mut screen, 80, 24).contains("no events for 3 s"));
        press(&mut screen, 'p');
        screen.take(Period::default());
        let paused = text(&mut screen, 80, 24);
        assert!(paused.contains(lost) && paused.contains("PAUSED") && !paused.contains("no events"));
        press(&mut screen, 'p');
        screen.take(Period::default());
        assert!(!text(&mut screen, 80, 24).contains("LOST"));
    }
}
