//! Converts a profile in the order of time to a processed profile of the Firefox Profiler: see
//! <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>.
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;

use fxprof_processed_profile as firefox;
use fxprof_processed_profile::{
    CategoryColor, CpuDelta, Frame, FrameFlags, FrameInfo, ReferenceTimestamp, SamplingInterval, StackHandle,
    Timestamp, WeightType,
};
use serde_json::Value;

use super::TimeProfile;
use super::small_ids::SmallIds;
use super::timeline::TimelineEntry;
use crate::samples::Unit;

/// The time between two samples of a runtime in nanoseconds.
const INTERVAL: u64 = 1_000_000;

impl TimeProfile<'_> {
    /// Returns a profile of the Firefox Profiler, as JSON.
    ///
    /// A point of the timeline is a sample. An interval is a sample at its start, which weighs its duration; a long
    /// interval has another sample at its end, which weighs nothing, so that the graph of the thread shows its length.
    /// Frames have the category `Running` or `Waiting`.
    ///
    /// `name` is the name of the trace, and of a process whose name the trace does not state. `process_id` is the
    /// process of a trace of a runtime, and `unix_start` the start of the trace in nanoseconds since
    /// 1970, if the trace states it.
    ///
    /// Memory: no other format is built as a whole instead of piece by piece. An interval needs some hundred bytes.
    #[cfg_attr(docsrs, doc(cfg(feature = "firefox")))]
    #[must_use]
    pub fn to_firefox(&self, name: &str, process_id: u32, unix_start: Option<i128>) -> Value {
        let start =
            ReferenceTimestamp::from_millis_since_unix_epoch(unix_start.unwrap_or_default() as f64 / 1e6);
        let mut profile =
            firefox::Profile::new(self.stacks.title(name), start, SamplingInterval::from_nanos(INTERVAL));
        let running = profile.add_category("Running", CategoryColor::Green);
        let waiting = profile.add_category("Waiting", CategoryColor::Gray);
        let mut processes = BTreeMap::new();
        // The weight of each sample. The crate takes only whole numbers of 32 bits as weights, so a sample first gets
        // the index of its weight in this list. The weight replaces the index in the JSON below.
        let mut weights = Vec::new();
        let is_time = self.clock.unit() == Unit::Nanoseconds;
        // The crate takes ids of 32 bits. The ids replace the small ones in the JSON below.
        let all_threads = self.stacks.samples.threads();
        let mut process_ids = SmallIds::new(all_threads.iter().map(|thread| thread.process));
        let mut thread_ids = SmallIds::new(all_threads.iter().map(|thread| thread.id));
        let mut large_ids = BTreeMap::new();
        for (thread, entries) in self.threads() {
            let pid = if thread.process == 0 { process_id } else { process_ids.of(thread.process) };
            let first = entries.first().map_or(0, |entry| entry.start);
            let at = Timestamp::from_nanos_since_reference;
            let process_name = self.stacks.process_name(thread.process, name);
            let process =
                *processes.entry(pid).or_insert_with(|| profile.add_process(process_name, pid, at(0)));
            let tid = thread_ids.of_thread(thread);
            for (key, small, id) in [("pid", pid, thread.process), ("tid", tid, thread.id)] {
                if id > u32::MAX.into() {
                    large_ids.insert((key, small.to_string()), id.to_string());
                }
            }
            let handle = profile.add_thread(process, tid, at(first), tid == pid);
            if !thread.name.is_empty() {
                profile.set_thread_name(handle, &thread.name);
            }
            profile.set_thread_samples_weight_type(handle, self.weight_type());
            let mut stacks = BTreeMap::new();
            let mut path = Vec::new();
            let mut stack_of = |profile: &mut firefox::Profile, entry: &TimelineEntry| {
                *stacks.entry((entry.stack, entry.runs)).or_insert_with(|| {
                    self.path(entry, &mut path);
                    let category = if entry.runs { running } else { waiting };
                    path.iter().fold(None, |caller: Option<StackHandle>, frame| {
                        let label = Frame::Label(profile.intern_string(self.stacks.names().text(*frame)));
                        let flags = FrameFlags::empty();
                        let frame = FrameInfo { frame: label, category_pair: category.into(), flags };
                        let frame = profile.intern_frame(handle, frame);
                        Some(profile.intern_stack(handle, caller, frame))
                    })
                })
            };
            let mut add = |profile: &mut firefox::Profile, time, stack, cpu, weight: Value| {
                let number = i32::try_from(weights.len()).unwrap_or(i32::MAX);
                profile.add_sample(handle, at(time), stack, CpuDelta::from_nanos(cpu), number);
                weights.push(weight);
            };
            // The time on the processor since the last sample.
            let mut cpu = 0;
            for entry in entries {
                let stack = stack_of(&mut profile, entry);
                if !is_time {
                    add(&mut profile, entry.start, stack, 0, entry.amount.into());
                    continue;
                }
                add(&mut profile, entry.start, stack, cpu, (entry.amount as f64 / 1e6).into());
                cpu = if entry.runs { entry.amount } else { 0 };
                if entry.amount > 2 * INTERVAL {
                    add(&mut profile, entry.end().saturating_sub(1), stack, cpu, 0.into());
                    cpu = 0;
                }
            }
            if let (true, Some(last)) = (is_time, entries.last()) {
                add(&mut profile, last.end(), None, cpu, 0.into());
            }
        }
        // The conversion cannot fail: all keys are strings, and no value is refused.
        let mut profile = serde_json::to_value(&profile).unwrap_or_default();
        if let (None, Some(start)) = (unix_start, profile.pointer_mut("/meta/startTime")) {
            *start = Value::Null;
        }
        let threads = profile.get_mut("threads").and_then(Value::as_array_mut);
        for thread in threads.into_iter().flatten() {
            for key in ["pid", "tid"] {
                let Some(id) = thread.get_mut(key) else { continue };
                if let Some(large) = id.as_str().and_then(|small| large_ids.get(&(key, small.to_string()))) {
                    *id = large.as_str().into();
                }
            }
        }
        // Each sample has the index of its weight in place of the weight, because the crate reorders threads.
        let threads = profile.get_mut("threads").and_then(Value::as_array_mut);
        let lists = threads.into_iter().flatten().filter_map(|thread| thread.pointer_mut("/samples/weight"));
        for number in lists.filter_map(Value::as_array_mut).flatten() {
            let place = number.as_u64().and_then(|number| usize::try_from(number).ok());
            if let Some(weight) = place.and_then(|place| weights.get_mut(place)) {
                *number = weight.take();
            }
        }
        profile
    }

    const fn weight_type(&self) -> WeightType {
        match self.clock.unit() {
            Unit::Nanoseconds => WeightType::TracingMs,
            Unit::Bytes => WeightType::Bytes,
            Unit::Samples | Unit::Events => WeightType::Samples,
        }
    }
}
