//! `Table`, the live table of `counters`: a row for each series, with its last minute, and the keys. It needs no
//! terminal.
use std::collections::{BTreeMap, VecDeque};

use crossterm::event::{KeyCode, KeyEvent};
use nettrace_analysis::counters::{Measurement, OwnedSample, System};
use unicode_width::UnicodeWidthStr;

use super::distribution::distribution;
use super::lines::series_name;
use super::report::Process;
use super::series_details::all_tags;
use super::unique_labels::UniqueLabels;
use super::units::{plain, printable_unit, with_unit};
use crate::terminal::full_screen::{Line, Style};
use crate::terminal::screen_table::{Column, Columns, Footer, Request, ScreenTable, TableFrame};
use crate::text::columns::{aligned_right, cut_middle};
use crate::text::printable::{printable, printable_name};

/// The rows of the table, and what the keys have selected.
#[derive(Default)]
pub(crate) struct Table {
    rows: BTreeMap<RowKey, Row>,
    shows_process: bool,
    sort: Sort,
    filter: String,
    is_typing: bool,
    table: ScreenTable,
    note: String,
    dropped: u64,
    labels: UniqueLabels,
    /// The approximate memory of the names of the rows in bytes.
    size: usize,
}

/// The key of the series in its process.
type RowKey = (Process, String);

struct Row {
    /// The provider and the name of the counter, with tags, and a shorter form for narrow terminals.
    name: String,
    short: String,
    /// The numbers of the last sample: the main one (of a histogram, its median), the rate, and all as text.
    value: Option<f64>,
    rate: Option<f64>,
    numbers: String,
    /// The numbers of the last minute.
    history: VecDeque<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Sort {
    #[default]
    Name,
    Value,
    Rate,
}

/// The maximum number of rows. Further series are not shown.
const MAX_ROWS: usize = 5_000;
/// The maximum memory of the names of the rows in bytes.
const MAX_SIZE: usize = 32 << 20;
/// The maximum width of the name of a row in columns.
const MAX_NAME: usize = 256;
/// The maximum number of samples in a row: one minute with an interval of one second.
const MAX_HISTORY: usize = 60;
/// The width of a number, and of two numbers with a space in between, in columns.
const NUMBER: usize = 14;
const NUMBERS: usize = 29;

impl Table {
    pub(crate) fn new(shows_process: bool) -> Self {
        Self { shows_process, ..Self::default() }
    }

    pub(crate) fn note(&mut self, note: &str) {
        self.note = printable(note).into_owned();
    }

    /// Takes a sample, unless the table is paused.
    pub(crate) fn add(&mut self, process: &Process, sample: &OwnedSample) {
        if self.table.is_paused {
            return;
        }
        let mut key = (process.clone(), String::new());
        sample.push_series_key(&mut key.1);
        let row = match self.rows.get_mut(&key) {
            Some(row) => row,
            None => {
                let row = Row::new(process, sample, &mut self.labels);
                let size = self.size.saturating_add(row.size(&key));
                if self.rows.len() >= MAX_ROWS || size > MAX_SIZE {
                    self.dropped = self.dropped.saturating_add(1);
                    return;
                }
                self.size = size;
                self.rows.entry(key).or_insert(row)
            }
        };
        row.update(sample);
        if let Some(number) = row.rate.or(row.value) {
            row.history.push_back(number);
        }
        if row.history.len() > MAX_HISTORY {
            row.history.pop_front();
        }
    }

    /// Removes the rows of an instrument that has ended, whose keys have this prefix, or else of the process.
    pub(crate) fn remove(&mut self, process: &Process, instrument: Option<&str>) {
        let prefix = instrument.unwrap_or_default();
        let from = self.rows.range((process.clone(), prefix.to_owned())..);
        let is_ended = |(owner, key): &&RowKey| owner == process && key.starts_with(prefix);
        let ended: Vec<RowKey> = from.map(|(key, _)| key).take_while(is_ended).cloned().collect();
        for key in ended {
            if let Some(row) = self.rows.remove(&key) {
                self.size = self.size.saturating_sub(row.size(&key));
            }
        }
        if instrument.is_none() {
            self.labels.remove(process);
        }
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Request {
        let Self { is_typing, filter, sort, .. } = self;
        self.table.key(key, |table, code| {
            match code {
                _ if *is_typing => {
                    match code {
                        KeyCode::Enter => *is_typing = false,
                        KeyCode::Esc => {
                            *is_typing = false;
                            filter.clear();
                        }
                        KeyCode::Backspace => _ = filter.pop(),
                        KeyCode::Char(c) => filter.push(c),
                        _ => {}
                    }
                    table.skip = 0;
                }
                KeyCode::Char('/') => *is_typing = true,
                KeyCode::Char('s') => {
                    *sort = match sort {
                        Sort::Name => Sort::Value,
                        Sort::Value => Sort::Rate,
                        Sort::Rate => Sort::Name,
                    }
                }
                _ => return false,
            }
            true
        })
    }

    /// Returns the lines for a terminal of this size.
    pub(crate) fn lines(&mut self, width: usize, height: usize) -> Vec<Line> {
        let filter = self.filter.to_lowercase();
        let shows_process = self.shows_process;
        let named = |(process, _): &RowKey, name: &str| match process.id {
            Some(id) if shows_process => format!("{id} {name}"),
            _ => name.to_owned(),
        };
        let has_filter =
            |(key, row): &(&RowKey, &Row)| named(key, &row.name).to_lowercase().contains(&filter);
        let mut rows: Vec<(&RowKey, &Row)> =
            self.rows.iter().filter(|row| filter.is_empty() || has_filter(row)).collect();
        let by = |number: fn(&Row) -> Option<f64>| {
            move |(_, a): &(&RowKey, &Row), (_, b): &(&RowKey, &Row)| {
                let of =
                    |row: &Row| number(row).filter(|number| !number.is_nan()).unwrap_or(f64::NEG_INFINITY);
                of(b).total_cmp(&of(a))
            }
        };
        match self.sort {
            Sort::Name => {}
            Sort::Value => rows.sort_by(by(|row| row.value)),
            Sort::Rate => rows.sort_by(by(|row| row.rate)),
        }
        let spark = (width / 5).min(MAX_HISTORY);
        let columns = [Column::Rest(8), Column::Right(NUMBERS), Column::Left(spark)];
        let columns = Columns { gap: 1, columns: &columns };
        let name_width = width.saturating_sub(spark).saturating_sub(NUMBERS).saturating_sub(2).max(8);
        let numbers = format!("{:>NUMBER$} {:>NUMBER$}", "VALUE", "RATE");
        let footer = if self.is_typing {
            format!("filter: {}_", printable(&self.filter))
        } else if self.note.is_empty() {
            "q quit  p pause  / filter  s sort  ↑↓ scroll  histograms: p50 p95 p99, n".to_owned()
        } else {
            self.note.clone()
        };
        let frame = TableFrame {
            head: vec![(Style::Bold, columns.row(&[&self.title(rows.len()), "", ""], width))],
            heading: columns.heading(&["COUNTER", &numbers, "LAST MINUTE"], width),
            footer: Footer::AfterRows(footer),
        };
        self.table.lines((width, height), frame, rows.len(), |skip, room| {
            let shown = rows.iter().skip(skip).take(room);
            let line = |(key, row): &(&RowKey, &Row)| {
                // Each row has two names: a long one, and a short one for a narrow terminal.
                let [long, short] = [&row.name, &row.short].map(|name| named(key, name));
                let name = if long.width() > name_width { short } else { long };
                columns.row(&[&name, &row.numbers, &sparkline(&row.history, spark)], width)
            };
            shown.map(line).collect()
        })
    }

    fn title(&self, shown: usize) -> String {
        let mut title = format!("{shown} series");
        if shown != self.rows.len() {
            title = format!("{shown} of {} series", self.rows.len());
        }
        match self.sort {
            Sort::Name => {}
            Sort::Value => title.push_str(", by value"),
            Sort::Rate => title.push_str(", by rate"),
        }
        if !self.filter.is_empty() {
            title.push_str(&format!(", with '{}'", printable(&self.filter)));
        }
        if self.dropped > 0 {
            title.push_str(", more are not shown");
        }
        if self.table.is_paused {
            title.push_str(", paused");
        }
        title
    }
}

impl Row {
    fn new(process: &Process, sample: &OwnedSample, labels: &mut UniqueLabels) -> Self {
        let (shown, name) = labels.of_series(process, sample, |details| series_name(sample, details));
        let name = name.to_string();
        // All series of an instrument have the same keys, so that the values are enough.
        let short = match sample.system {
            System::Meter if sample.tag_text.is_empty() || !shown.is_none() => name.clone(),
            System::Meter => {
                let values: Vec<_> = all_tags(sample).map(|(_, value)| value).collect();
                let names = [&*sample.provider, &*sample.name, &*values.join(",")];
                let [provider, name, values] = names.map(printable_name);
                format!("{provider}/{name}[{values}]")
            }
            System::EventCounter => name.clone(),
        };
        let [name, short] = [name, short].map(|name| cut_middle(&name, MAX_NAME));
        Self { name, short, value: None, rate: None, numbers: String::new(), history: VecDeque::new() }
    }

    /// Returns approximately the memory of the names of a row in bytes.
    fn size(&self, (_, key): &RowKey) -> usize {
        [key, &self.name, &self.short].into_iter().fold(0, |size, text| size.saturating_add(text.len()))
    }

    /// Takes the numbers of a sample.
    fn update(&mut self, sample: &OwnedSample) {
        let measurement = &sample.measurement;
        // Annotations, such as {request}, are left out: the name already contains them.
        let unit = if sample.unit.starts_with('{') { String::new() } else { printable_unit(&sample.unit) };
        let shown = |number: f64| with_unit(number, &unit);
        if let Some((percentiles, count)) = distribution(measurement) {
            self.value = percentiles.first().map(|(_, value)| *value);
            let percentiles = percentiles.iter().take(3);
            let mut parts: Vec<String> =
                percentiles.map(|(_, value)| shown(*value).replace(' ', "")).collect();
            parts.extend(count.map(|count| format!("n={}", plain(count))));
            self.numbers = cut_middle(&parts.join(" "), NUMBERS);
            return;
        }
        self.value = measurement.value();
        self.rate = match measurement {
            Measurement::UpDownCounter { .. } => None,
            measurement => measurement.rate(sample.interval),
        };
        let mut rate = self.rate.map_or_else(String::new, |rate| format!("{}/s", shown(rate)));
        let mut value =
            measurement.number().map_or_else(|| "-".to_owned(), |number| with_unit(number, &unit));
        if let Measurement::UpDownCounter { value: Some(sum), since_start: true, .. } = measurement {
            // Without a rate, there is room to say that it is not a level.
            rate = "since start".to_owned();
            if sum.as_f64() >= 0.0 {
                value.insert(0, '+');
            }
        }
        let [value, rate] = [value, rate].map(|text| aligned_right(&cut_middle(&text, NUMBER), NUMBER));
        self.numbers = format!("{value} {rate}");
    }
}

/// Returns the last numbers as bars. The smallest number has the lowest bar, and the largest number the highest one.
fn sparkline(history: &VecDeque<f64>, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let skipped = history.len().saturating_sub(width);
    let last = || history.iter().skip(skipped).copied();
    let (min, max) = last()
        .filter(|number| number.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), number| (min.min(number), max.max(number)));
    let bar = |number: f64| {
        let share = (number - min) / (max - min);
        if !number.is_finite() {
            return ' ';
        }
        let step =
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].iter().filter(|step| share * 7.0 >= **step - 0.5).count();
        BARS.get(step).copied().unwrap_or('█')
    };
    last().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use core::ops::ControlFlow;

    use crossterm::event::KeyModifiers;
    use nettrace_analysis::Part;

    use super::*;
    use crate::args::process_arg::ProcessArg;
    use crate::counters::report::Report;
    use crate::counters::trace_reports::{last_recorded, read_file};

    /// The lines that are not rows: title, heading and keys.
    const OTHER_LINES: usize = 3;

    #[test]
    fn bars() {
        let bars = |numbers: &[f64], width| sparkline(&numbers.iter().copied().collect(), width);
        assert_eq!(bars(&[0.0, 1.0, 2.0, 3.5, 7.0], 9), "▁▂▃▅█");
        assert_eq!(bars(&[9.0, 0.0, 7.0], 2), "▁█");
        assert_eq!(bars(&[5.0, 5.0], 9), "▁▁");
        assert_eq!(bars(&[1.0, f64::NAN, 2.0], 9), "▁ █");
    }

    /// The rows of a recorded program, 300 of them, and what the keys do.
    #[test]
    fn rows() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/counters/net10-meters.nettrace");
        let mut table = Table::new(false);
        let mut samples = 0;
        let read =
            read_file(file.as_ref(), &[], &ProcessArg::default(), Part::default(), |process, report| {
                if let Report::Sample(sample) = report {
                    samples += 1;
                    table.add(process, &sample);
                }
                ControlFlow::Continue(())
            });
        assert!(read.is_ok() && samples == 210);
        let lines = table.lines(80, 50);
        assert_eq!(lines.len(), 38);
        let found: Vec<&str> = lines.iter().take(7).map(|(_, line)| line.trim_end()).collect();
        let expected = [
            "35 series",
            "COUNTER                                    VALUE           RATE LAST MINUTE",
            "Lab.Meter/lab.gauge[k=v]                    76 %                █▁▁▁▁▁",
            "Lab.Meter/lab.latency[host=h1]     89.97ms 149.9ms 159.9ms n=74 ▂█▁▇▁▅",
            "Lab.Meter/lab.open                            +1    since start ▅▅▁█▁▁",
            "Lab.Meter/lab.re…ests[/a,\"c\",200]            443           74/s ▆▁█▆▆▆",
            "Lab.Meter/lab.requests[route=/b]             886          148/s ▆▁█▆▆▆",
        ];
        assert_eq!(found, expected);
        let mut press = |code| table.key(KeyEvent::new(code, KeyModifiers::NONE));
        for code in
            [KeyCode::Char('/'), KeyCode::Char('G'), KeyCode::Char('E'), KeyCode::Char('N'), KeyCode::Enter]
        {
            press(code);
        }
        press(KeyCode::PageDown);
        let lines = table.lines(200, 5);
        assert_eq!(lines.len(), 5);
        assert!(lines.iter().skip(2).take(2).all(|(_, line)| line.contains("generation")), "{lines:#?}");
    }

    #[test]
    fn keys() {
        let mut table = Table::new(false);
        let mut key = |code| table.key(KeyEvent::new(code, KeyModifiers::NONE));
        for code in
            [KeyCode::Char('p'), KeyCode::Char('s'), KeyCode::Char('/'), KeyCode::Char('q'), KeyCode::Enter]
        {
            assert_eq!(key(code), Request::Redraw, "{code:?}");
        }
        assert_eq!(key(KeyCode::Char('q')), Request::Quit);
        assert!(table.table.is_paused && table.filter == "q" && table.sort == Sort::Value);
        for (width, height) in [(0, 0), (1, 1), (80, 24), (200, 3)] {
            let lines = table.lines(width, height);
            assert!(lines.len() <= height && lines.iter().all(|(_, line)| line.width() <= width));
        }
    }

    /// A sample of an instrument whose names a hostile or a Chinese program chose.
    fn sample(name: &str, tags: &str, unit: &str, value: f64) -> OwnedSample {
        let mut sample = last_recorded("net10-meters.nettrace", "Lab.Meter/lab.gauge");
        (sample.name, sample.tag_text, sample.unit) = (name.into(), tags.into(), unit.into());
        sample.measurement =
            Measurement::Mean { mean: value, standard_deviation: 0.0, count: 1, min: value, max: value };
        sample
    }

    /// At each size of the terminal, the lines of 300 rows fit, and their numbers are in the same columns.
    #[test]
    fn wide_and_hostile_names() {
        let mut table = Table::new(true);
        let process = Process { id: Some(7), name: "店".to_owned() };
        for n in 0..300_u32 {
            let (name, tags, unit) = match n % 4 {
                0 => (format!("订单.处理.时间.{n}"), "地区=东京,状态=成功".to_owned(), "個"),
                1 => (format!("a\u{1b}[2J\r\n{n}"), "k=\u{202e}v\u{7}".to_owned(), "\u{8}s"),
                2 => (format!("plain.{n}"), String::new(), "By"),
                _ => (format!("{n}{}", "e\u{301}".repeat(300)), "x".repeat(5_000), "长长长长长长长长长"),
            };
            table.add(&process, &sample(&name, &tags, unit, f64::from(n)));
        }
        assert_eq!(table.rows.len(), 300);
        for (width, height) in [(80, 24), (200, 50), (80, 24), (40, 10), (200, 400), (5, 5), (1, 1)] {
            table.key(KeyEvent::new(KeyCode::PageDown, KeyModifiers::NONE));
            let lines = table.lines(width, height);
            assert_eq!(lines.len(), height.min(300 + OTHER_LINES), "{width} {height}");
            for (_, line) in &lines {
                assert!(line.width() <= width, "{width}: {line}");
                assert!(!line.contains(crate::text::printable::is_control), "{line:?}");
            }
            if width >= 80 {
                let rows = || lines.iter().skip(2).take(height.min(302) - 2).map(|(_, line)| line);
                let spark = (width / 5).min(MAX_HISTORY);
                // The bar of the only sample is at the start of its column.
                assert!(rows().filter(|line| line.ends_with('▁')).count() > height / 2);
                let ends = rows().filter_map(|line| line.strip_suffix('▁'));
                assert!(ends.clone().all(|line| line.width() == width - spark), "{lines:#?}");
            }
        }
    }

    /// The end of an instrument visits its own rows only, and a row stores no more of a sample than it shows.
    #[test]
    fn many_ends() {
        let mut table = Table::new(true);
        let processes = [1, 2].map(|id| Process { id: Some(id), name: String::new() });
        let mut sample = sample("c", "k=v", "", 1.0);
        for id in 1..=2_000 {
            sample.instrument_id = Some(id);
            processes.iter().for_each(|process| table.add(process, &sample));
        }
        let key_of = |id| {
            let mut key = String::new();
            let mut sample = sample.clone();
            sample.instrument_id = Some(id);
            sample.push_series_key(&mut key);
            key
        };
        let ends: Vec<String> = (2..=2_000).map(key_of).collect();
        for _ in 0..100 {
            ends.iter().for_each(|key| table.remove(&processes[0], Some(key.split_once("k=v").unwrap().0)));
        }
        assert_eq!(table.rows.len(), 2_001);
        table.remove(&processes[1], None);
        assert_eq!(table.rows.len(), 1);
        table.remove(&processes[0], None);
        assert_eq!((table.rows.len(), table.size), (0, 0));
    }
}
