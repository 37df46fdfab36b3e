//! The outputs of samples: lines, the text format of Prometheus, or OTLP.
use core::time::Duration;
use std::io::{self, BufWriter, Write};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use crossterm::event::KeyEvent;
use nettrace_analysis::counters::OwnedSample;

use super::lines::SampleLines;
use super::otlp::Batch;
use super::prometheus::exposition::Exposition;
use super::report::{OwnedInstrument, Process};
use super::table::Table;
use super::text_file::TextFile;
use crate::run::threads::lock;
use crate::terminal::full_screen::FullScreen;
use crate::terminal::screen_table;

/// Where samples go.
pub(crate) enum Output {
    SampleLines(SampleLines<SampleStdout>),
    /// The table, its screen, and the keys that were pressed.
    Table(Box<Table>, FullScreen, Receiver<KeyEvent>),
    Otlp(Box<Batch>, SampleStdout),
    Prometheus(Arc<Mutex<Exposition>>, Prometheus),
}

/// Standard output for samples: of a session, or direct.
pub(crate) type SampleStdout = BufWriter<Box<dyn Write>>;

/// How the text format of Prometheus is written.
pub(crate) enum Prometheus {
    /// Once, at the end.
    Stdout(SampleStdout),
    /// After each interval.
    File(TextFile),
    /// When a client asks for it.
    Served,
}

impl Output {
    pub(crate) fn instrument(&mut self, process: &Process, instrument: OwnedInstrument) {
        match self {
            Self::SampleLines(_) | Self::Table(..) => {}
            Self::Otlp(batch, _) => batch.describe(process, instrument),
            Self::Prometheus(exposition, _) => lock(exposition).describe(process, instrument),
        }
    }

    pub(crate) fn sample(&mut self, process: &Process, sample: &OwnedSample) -> io::Result<()> {
        match self {
            Self::SampleLines(lines) => lines.add(process, sample),
            Self::Table(table, ..) => {
                table.add(process, sample);
                Ok(())
            }
            Self::Otlp(batch, out) => {
                if batch.add(process, sample) {
                    write_batch(batch, out)
                } else {
                    Ok(())
                }
            }
            Self::Prometheus(exposition, _) => {
                lock(exposition).add(process, sample);
                Ok(())
            }
        }
    }

    /// Makes the lines of a trace state their process. Other outputs always do, and a trace is not shown as a table.
    pub(crate) const fn show_processes(&mut self) {
        if let Self::SampleLines(lines) = self {
            lines.show_processes();
        }
    }

    /// Handles the end of an instrument by the start of the keys of its series, or with `None` the end of the whole
    /// process.
    pub(crate) fn ended(&mut self, process: &Process, instrument: Option<&str>) {
        match (self, instrument) {
            (Self::Prometheus(exposition, _), Some(prefix)) => {
                lock(exposition).remove_series(process, prefix)
            }
            // Text on standard output is written once, at the end, and also contains processes that have ended.
            (Self::Prometheus(exposition, Prometheus::File(_) | Prometheus::Served), None) => {
                lock(exposition).remove(process)
            }
            (Self::Table(table, ..), instrument) => table.remove(process, instrument),
            (Self::SampleLines(lines), None) => lines.remove(process),
            (Self::Otlp(batch, _), None) => batch.remove(process),
            _ => {}
        }
    }

    /// Returns how often to call [`tick`](Self::tick): not more than each 100 ms, so that there is time for the
    /// reports.
    pub(crate) fn pace(&self, interval: Duration) -> Duration {
        const KEYS: Duration = Duration::from_millis(100);
        if matches!(self, Self::Table(..)) { KEYS } else { interval.max(KEYS) }
    }

    /// Shows a remark in the table. Returns `false` if the output is not a table.
    pub(crate) fn note(&mut self, note: &str) -> bool {
        if let Self::Table(table, ..) = self {
            table.note(note);
            return true;
        }
        false
    }

    /// Returns what the output does not have because of its limits, each time that this becomes more.
    pub(crate) fn left_out(&mut self) -> Option<String> {
        match self {
            Self::Prometheus(exposition, _) => lock(exposition).left_out(),
            _ => None,
        }
    }

    /// Handles keys. Returns whether one of them ends the output.
    pub(crate) fn keys(&mut self) -> bool {
        let Self::Table(table, _, keys) = self else { return false };
        keys.try_iter().any(|key| table.key(key) == screen_table::Request::Quit)
    }

    /// Writes the samples of an interval after its end.
    pub(crate) fn tick(&mut self) -> io::Result<()> {
        match self {
            Self::SampleLines(_) | Self::Prometheus(_, Prometheus::Stdout(_) | Prometheus::Served) => Ok(()),
            Self::Table(table, screen, _) => {
                let (width, height) = screen.size();
                screen.draw(&table.lines(width, height))
            }
            Self::Otlp(batch, out) => write_batch(batch, out),
            Self::Prometheus(exposition, Prometheus::File(file)) => {
                let text = lock(exposition).text();
                file.write(&text)
            }
        }
    }

    /// Writes the samples that are still in the buffer, if the output is lines. Other outputs write them in
    /// [`tick`](Self::tick).
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::SampleLines(lines) => lines.flush(),
            _ => Ok(()),
        }
    }

    /// Writes the samples that are not written yet, and ends the output.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Otlp(batch, out) => write_batch(batch, out),
            Self::Prometheus(exposition, Prometheus::File(file)) => {
                let text = lock(exposition).text();
                file.finish(&text)
            }
            Self::SampleLines(lines) => lines.flush(),
            Self::Prometheus(exposition, Prometheus::Stdout(out)) => {
                let text = lock(exposition).text();
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            _ => Ok(()),
        }
    }
}

fn write_batch(batch: &mut Batch, out: &mut SampleStdout) -> io::Result<()> {
    let Some(request) = batch.take() else { return Ok(()) };
    writeln!(out, "{request}")?;
    out.flush()
}

/// Every exporter writes as many series as it gets, whatever their names and numbers are.
#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fastrand::Rng;
    use nettrace_analysis::counters::{
        ExponentialHistogram, InstrumentDetails, Measurement, Quantile, System,
    };
    use serde_json::Value;

    use super::super::lines::LineFormat;
    use super::super::trace_reports::last_recorded;
    use super::*;

    const NUMBERS: [f64; 10] = [
        0.0,
        1.0,
        -1.0,
        0.1,
        9_007_199_254_740_993.0,
        1e300,
        f64::MAX,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];

    /// Samples of random series of two processes, with their keys. Some differ only in one detail.
    fn samples(random: &mut Rng) -> Vec<(Process, OwnedSample)> {
        let recorded = |name: &str| last_recorded("net10-exponential.nettrace", &format!("Lab.Meter/{name}"));
        let [gauge, histogram] = ["lab.gauge", "lab.latency"].map(recorded);
        let Measurement::ExponentialHistogram(histogram) = histogram.measurement else {
            panic!("{histogram:?}")
        };
        let mut details = InstrumentDetails::default();
        let mut found = Vec::new();
        for _ in 0..60 {
            let mut sample = gauge.clone();
            let mut one_of = |texts: &[&str]| (*random.choice(texts).unwrap()).to_owned();
            sample.provider = one_of(&["M", "m", "3M"]);
            sample.name = one_of(&["a.b", "a-b", "订单", "a.count", "gauge"]);
            sample.tag_text = one_of(&[
                "",
                "k.1=v",
                "k-1=v",
                "k 1=v",
                "kind=x,unit=y",
                "k=v;w=x",
                "k=v,w=x",
                r"k=v\,w\=x",
                "le=1",
            ]);
            sample.provider_version = one_of(&["", "1.0"]);
            sample.unit = one_of(&["", "s", "ms", "count", "{x}"]);
            details.meter_tag_text = one_of(&["", "k=v", "m=1"]);
            details.instrument_tag_text = one_of(&["", "k=v"]);
            details.meter_scope_hash = one_of(&["", "", "7"]);
            sample.instrument_id = random.bool().then(|| random.u32(1..3));
            let has_details = sample.instrument_id.is_none() && details != InstrumentDetails::default();
            sample.details = has_details.then(|| Arc::new(details.clone()));
            sample.instance = if sample.instrument_id.is_none() { random.u32(0..2) } else { 0 };
            sample.has_escaped_tags = sample.tag_text.contains('\\');
            let mut number = || random.choice(NUMBERS).unwrap();
            sample.interval = Some(number());
            let (value, second) = (number(), number());
            sample.measurement = match random.u32(0..9) {
                0 => Measurement::Counter { delta: Some(value.into()), value: Some(second.into()) },
                1 => Measurement::Counter { delta: Some(value.into()), value: None },
                2 => Measurement::UpDownCounter {
                    delta: Some(value.into()),
                    value: Some(second.into()),
                    since_start: random.bool(),
                },
                3 => Measurement::Histogram {
                    quantiles: vec![Quantile { quantile: 0.5, value }; 2],
                    count: Some(u64::MAX),
                    sum: Some(second),
                },
                4 => Measurement::ExponentialHistogram(extreme(histogram.clone(), random)),
                5 => {
                    sample.system = System::EventCounter;
                    Measurement::Mean {
                        mean: value,
                        standard_deviation: 0.0,
                        count: 0,
                        min: second,
                        max: value,
                    }
                }
                6 => {
                    sample.system = System::EventCounter;
                    Measurement::Sum { increment: value, time_scale: None }
                }
                _ => Measurement::Gauge { value: Some(value.into()) },
            };
            if sample.system == System::EventCounter {
                (sample.instrument_id, sample.details, sample.instance) = (None, None, 0);
                (sample.provider_version, sample.has_escaped_tags) = (String::new(), false);
            }
            found.push((Process { id: Some(random.u64(1..3)), name: "app".to_owned() }, sample));
        }
        found
    }

    /// Returns a histogram that is empty, or whose bounds are beyond all numbers, or are equal, or are unknown.
    fn extreme(mut histogram: ExponentialHistogram, random: &mut Rng) -> ExponentialHistogram {
        match random.u32(0..4) {
            0 => {
                histogram.buckets.clear();
                (histogram.count, histogram.min, histogram.max) = (0, f64::MAX, f64::MIN);
            }
            1 => (histogram.scale, histogram.first_bucket) = (-11, Some(-3)),
            2 => (histogram.scale, histogram.first_bucket) = (0, Some(-1_080)),
            _ => (histogram.first_bucket, histogram.sum) = (None, f64::NAN),
        }
        histogram
    }

    fn lines(samples: &[(Process, OwnedSample)], style: LineFormat) -> Vec<String> {
        let mut out = Vec::new();
        let mut lines = SampleLines::new(style, &mut out, None, true);
        samples.iter().for_each(|(process, sample)| lines.add(process, sample).unwrap());
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    /// The line of a sample of Prometheus without its number, if it stands for a series: not a quantile or a bucket.
    fn series_of(line: &str) -> Option<&str> {
        let (name, number) = line.rsplit_once(' ')?;
        assert!(["NaN", "+Inf", "-Inf"].contains(&number) || number.parse::<f64>().is_ok(), "{line}");
        let (family, labels) = name.split_once('{')?;
        let is_part =
            family.ends_with("_sum") || family.ends_with("_bucket") || labels.contains("quantile=\"");
        (!is_part).then_some(name)
    }

    #[test]
    fn as_many_series_come_out_as_went_in() {
        for seed in 0..100 {
            let mut random = Rng::with_seed(seed);
            let samples = samples(&mut random);
            let keys: BTreeSet<(Process, String)> = samples
                .iter()
                .map(|(process, sample)| {
                    let mut key = String::new();
                    sample.push_series_key(&mut key);
                    (process.clone(), key)
                })
                .collect();
            // A series again has the same names again.
            let twice = [&samples[..], &samples[..]].concat();

            let text = lines(&twice, LineFormat::Text);
            let names = text.iter().map(|line| {
                let (_, rest) = line.split_once("] ").unwrap();
                let process = line.split_once('[').unwrap().1.split_once(']').unwrap().0;
                let end = rest.find("] ").map_or_else(|| rest.find(' ').unwrap(), |end| end + 1);
                (process, &rest[..end])
            });
            assert_eq!(names.collect::<BTreeSet<_>>().len(), keys.len(), "{seed}: {text:#?}");

            let json = lines(&twice, LineFormat::Json);
            let identities = json.iter().map(|line| {
                let mut line: Value = serde_json::from_str(line).unwrap();
                let line = line.as_object_mut().unwrap();
                let numbers =
                    ["value", "rate", "interval", "time", "count", "sum", "min", "max", "quantiles"];
                let buckets = ["scale", "zero_count", "first_bucket", "buckets"];
                numbers.iter().chain(&buckets).for_each(|key| _ = line.remove(*key));
                format!("{line:?}")
            });
            assert_eq!(identities.collect::<BTreeSet<_>>().len(), keys.len(), "{seed}");

            let csv = lines(&twice, LineFormat::Csv).join("\n");
            let mut reader = csv::Reader::from_reader(csv.as_bytes());
            let rows = reader.records().map(|row| row.unwrap());
            let names =
                rows.map(|row| (row[1].to_owned(), name_of(&row[2]), row[3].to_owned(), row[5].to_owned()));
            let shown = samples.iter().filter(|(_, sample)| has_rows(sample)).map(|(process, sample)| {
                let mut key = String::new();
                sample.push_series_key(&mut key);
                (process, key)
            });
            assert_eq!(
                names.collect::<BTreeSet<_>>().len(),
                shown.collect::<BTreeSet<_>>().len(),
                "{seed}: {csv}"
            );

            let mut exposition = Exposition::default();
            twice.iter().for_each(|(process, sample)| exposition.add(process, sample));
            let text = exposition.text();
            let all: Vec<&str> = text
                .lines()
                .filter(|line| !line.starts_with('#'))
                .map(|line| line.rsplit_once(' ').unwrap().0)
                .collect();
            let unique: BTreeSet<&str> = all.iter().copied().collect();
            assert_eq!(unique.len(), all.len(), "{seed}: a line twice in {text}");
            let series = text.lines().filter(|line| !line.starts_with('#')).filter_map(series_of);
            assert_eq!(series.count(), keys.len(), "{seed}: {text}");

            let mut batch = Batch::default();
            samples.iter().for_each(|(process, sample)| _ = batch.add(process, sample));
            let request = serde_json::from_str(&batch.take().unwrap()).unwrap();
            assert_eq!(points(&request).len(), keys.len(), "{seed}: {request}");
        }
    }

    /// Returns the name of a row without what varies in a series: the interval of a rate, and the percentile.
    fn name_of(row: &str) -> String {
        let mut name = row.to_owned();
        for percent in ["50", "95", "99"] {
            let tag = format!("Percentile={percent}");
            name = name.replace(&format!(";{tag}"), "").replace(&format!("[{tag}]"), "");
        }
        match (name.find(" / "), name.find(" sec)")) {
            (Some(start), Some(end)) if start < end => format!("{}{}", &name[..start], &name[end..]),
            _ => name,
        }
    }

    fn has_rows(sample: &OwnedSample) -> bool {
        match &sample.measurement {
            Measurement::ExponentialHistogram(histogram) => histogram.quantile(0.5).is_some(),
            _ => true,
        }
    }

    /// Returns what identifies each data point of a request.
    fn points(request: &Value) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for resource in request["resourceMetrics"].as_array().unwrap() {
            for scope in resource["scopeMetrics"].as_array().unwrap() {
                for metric in scope["metrics"].as_array().unwrap() {
                    let kinds = ["gauge", "sum", "summary", "exponentialHistogram"];
                    let kind = kinds.iter().find(|kind| metric[**kind].is_object()).unwrap();
                    for point in metric[*kind]["dataPoints"].as_array().unwrap() {
                        let own = [&resource["resource"], &scope["scope"], &metric["name"], &metric["unit"]];
                        // A sum with a negative number is not monotonic, and is the same series.
                        found.insert(format!("{own:?} {}", point["attributes"]));
                    }
                }
            }
        }
        found
    }
}
