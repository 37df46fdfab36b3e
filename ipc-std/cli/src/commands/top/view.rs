//! `View`: which rows of a period `top` shows, and their texts.
use core::cmp::Reverse;
use std::sync::Arc;

use nettrace_analysis::live::{Activity, FunctionActivity, ThreadActivity};
use nettrace_analysis::samples::Weight;
use unicode_width::UnicodeWidthStr;

use super::message::Period;
use crate::process::system_threads;
use crate::terminal::screen_table::{Column, Columns};
use crate::text::columns::{cut_end, padded};
use crate::text::function_name::{FunctionName, mark};
use crate::text::printable::printable;

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

    /// Returns the number of events that the runtime dropped in the time of [`Self::activity`].
    pub(super) const fn lost(self, period: &Period) -> u64 {
        let [last, total] = period.lost;
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

pub(super) fn percent(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 * 100.0 / all as f64 }
}

/// The columns of two shares and a function, and the spaces between them.
const FUNCTION_COLUMNS: [Column; 3] = [FIRST_SHARE, SECOND_SHARE, Column::Rest(0)];
const FIRST_SHARE: Column = Column::Right(8);
const SECOND_SHARE: Column = Column::Right(7);
const GAP: usize = 2;

/// The width below which threads are shown without names.
const NARROW: usize = 80;

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
