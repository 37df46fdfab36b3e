//! Writes a profile in the format of pprof. The numbers of the fields are from
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>.
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ipc_proto::wire::to_u64;
use prost::Message;

use super::Profile;
use crate::StackId;
use crate::names::FrameId;
use crate::samples::{SampledThread, Unit};

/// A part of a profile. The parts of a file follow each other, and a reader joins their lists.
#[derive(Message)]
struct ProfilePart {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<ProfileSample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
}

#[derive(Clone, Copy, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Message)]
struct ProfileSample {
    /// The locations of the stack, the innermost first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, Copy, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
    #[prost(int64, tag = "3")]
    num: i64,
}

#[derive(Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

/// The system name (field 3) is left out. If it equals the name, pprof takes the name for a name of C++, and removes
/// arguments and generics.
#[derive(Clone, Copy, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// The content of the parts so far.
#[derive(Default)]
struct Written {
    strings: i64,
    /// The number of the function and of the location of each frame.
    frames: BTreeMap<FrameId, u64>,
    modules: BTreeMap<String, i64>,
}

impl Written {
    /// Adds a string to the table, and returns its number.
    fn string(&mut self, text: &str, part: &mut ProfilePart) -> i64 {
        part.string_table.push(text.to_string());
        let number = self.strings;
        self.strings = self.strings.saturating_add(1);
        number
    }

    /// Returns the number of a frame's location, and adds it if it is new.
    fn location(&mut self, frame: FrameId, name: &str, part: &mut ProfilePart) -> u64 {
        if let Some(id) = self.frames.get(&frame) {
            return *id;
        }
        // Numbers of locations begin at 1, because 0 stands for no location.
        let id = to_u64(self.frames.len()).saturating_add(1);
        self.frames.insert(frame, id);
        let module = name.split_once('!').map_or("", |(module, _)| module);
        let filename = match self.modules.get(module) {
            Some(number) => *number,
            None => {
                let number = self.string(module, part);
                self.modules.insert(module.to_string(), number);
                number
            }
        };
        let name = self.string(name, part);
        part.function.push(Function { id, name, filename });
        part.location.push(Location { id, line: [Line { function_id: id }].into() });
        id
    }
}

impl Profile<'_> {
    /// Writes a profile of pprof, without compression: `pprof` reads it, and expects gzip in files named `.pb.gz`.
    ///
    /// Each sample is a stack of a thread, with labels `thread` (name) and `thread_id`, and with `process` (name) and
    /// `process_id` if the trace has several processes. A function is named as a frame,
    /// and its file is the module. `unix_start` is the time of the trace in nanoseconds since 1970, as
    /// [`TraceClock::unix_start`](nettrace::TraceClock::unix_start) returns it.
    ///
    /// `out` takes the file piece by piece.
    ///
    /// # Errors
    /// Returns the error of `out`.
    #[cfg_attr(docsrs, doc(cfg(feature = "pprof")))]
    pub fn write_pprof<E>(
        &self,
        unix_start: Option<i128>,
        mut out: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut buf = Vec::new();
        let mut put = |part: &mut ProfilePart| {
            buf.clear();
            // Encoding into a vector cannot fail: it always has room.
            let _ = part.encode(&mut buf);
            part.clear();
            out(&buf)
        };
        let (mut written, mut part) = (Written::default(), ProfilePart::default());
        // The first string must be empty.
        let none = written.string("", &mut part);
        let (name, unit) = match self.unit {
            Unit::Samples => ("samples", "count"),
            Unit::Nanoseconds => ("time", "nanoseconds"),
            Unit::Bytes => ("alloc_space", "bytes"),
            Unit::Events => ("events", "count"),
        };
        let r#type = written.string(name, &mut part);
        let unit = written.string(unit, &mut part);
        part.sample_type.push(ValueType { r#type, unit });
        part.time_nanos = unix_start.and_then(|start| start.try_into().ok()).unwrap_or_default();
        let keys = ["thread_id", "thread", "process_id", "process"];
        let [id_key, name_key, process_id_key, process_key] = keys.map(|key| written.string(key, &mut part));
        let has_several_processes = self.stacks.has_several_processes();
        put(&mut part)?;
        for (thread, rows) in self.threads() {
            let SampledThread { process, id, name, .. } = thread;
            let process_name = self.stacks.samples.process_name(*process).filter(|_| has_several_processes);
            // A number that the format cannot have is a text.
            let mut number = |key, id: u64| match i64::try_from(id) {
                Ok(num) => Label { key, str: none, num },
                Err(_) => Label { key, str: written.string(&id.to_string(), &mut part), num: 0 },
            };
            let id = number(id_key, *id);
            let process_id = has_several_processes.then(|| number(process_id_key, *process));
            let mut text = |key, text: &str| Label { key, str: written.string(text, &mut part), num: 0 };
            let name = (!name.is_empty()).then(|| text(name_key, name));
            let process = process_name.map(|name| text(process_key, name));
            let labels = [Some(id), name, process_id, process];
            for (_, stack, weight) in rows {
                let sample = self.sample(*stack, *weight, labels, &mut written, &mut part);
                part.sample.push(sample);
                put(&mut part)?;
            }
        }
        Ok(())
    }

    fn sample(
        &self,
        stack: StackId,
        weight: u64,
        labels: [Option<Label>; 4],
        written: &mut Written,
        part: &mut ProfilePart,
    ) -> ProfileSample {
        let mut path = Vec::new();
        self.stacks.path(stack, &mut path);
        let location = |frame: FrameId| written.location(frame, self.stacks.names().text(frame), part);
        ProfileSample {
            location_id: path.into_iter().map(location).collect(),
            value: [i64::try_from(weight).unwrap_or(i64::MAX)].into(),
            label: labels.into_iter().flatten().collect(),
        }
    }
}
