//! References of a trace that lead nowhere: numbers in events that no record declares.
use nettrace::{Event, IdMap, Record, Slot, Version};
use serde::Serialize;

/// The tables of a trace: descriptions, threads, stacks and label lists. As JSON, they are their counts.
#[derive(Debug, Default, Serialize)]
pub(super) struct References {
    metadata: ReferenceTable,
    threads: ReferenceTable,
    stacks: ReferenceTable,
    label_lists: ReferenceTable,
    #[serde(skip)]
    has_indexes: bool,
}

/// The numbers of one table, and the references to it that lead nowhere.
#[derive(Debug, Serialize)]
struct ReferenceTable {
    /// The generation in which each number was declared last; 0 after its removal.
    #[serde(skip)]
    declared: IdMap<Vec<Slot<u64>>>,
    /// All numbers of earlier generations are removed.
    #[serde(skip)]
    generation: u64,
    /// The last number that led to a record, until numbers are removed.
    #[serde(skip)]
    resolved: Option<u64>,
    #[serde(flatten)]
    counts: Counts,
}

/// How often a number did not lead to one record.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Counts {
    /// References to a number that no record has declared.
    undeclared: u64,
    /// References to a number that was removed.
    removed: u64,
    declared_twice: u64,
    /// Removals of a number that is not declared.
    removed_twice: u64,
}

impl Default for ReferenceTable {
    fn default() -> Self {
        Self { declared: IdMap::new(Vec::new()), generation: 1, resolved: None, counts: Counts::default() }
    }
}

impl ReferenceTable {
    fn declare(&mut self, id: u64) {
        let before = self.declared.insert(id, self.generation).ok().flatten();
        add(&mut self.counts.declared_twice, before == Some(self.generation));
    }

    fn remove(&mut self, id: u64) {
        self.resolved = None;
        match self.declared.get_mut(id) {
            Some(generation) if *generation == self.generation => *generation = 0,
            _ => add(&mut self.counts.removed_twice, true),
        }
    }

    fn remove_all(&mut self) {
        self.resolved = None;
        self.generation = self.generation.saturating_add(1);
    }

    /// Counts a reference if it leads nowhere. Events often have the references of the event before.
    #[inline]
    fn refer(&mut self, id: u64) {
        if self.resolved != Some(id) {
            self.resolve(id);
        }
    }

    #[inline(never)]
    fn resolve(&mut self, id: u64) {
        match self.declared.get(id) {
            Some(generation) if *generation == self.generation => self.resolved = Some(id),
            Some(_) => add(&mut self.counts.removed, true),
            None => add(&mut self.counts.undeclared, true),
        }
    }
}

fn add(count: &mut u64, is_more: bool) {
    *count = count.saturating_add(is_more.into());
}

impl References {
    /// Takes the references of the next event.
    #[inline]
    pub(super) fn event(&mut self, event: &Event<'_>) {
        self.metadata.refer(event.metadata_id.into());
        if event.stack_id != 0 {
            self.stacks.refer(event.stack_id.into());
        }
        if self.has_indexes {
            self.threads.refer(event.thread);
            if event.capture_thread != event.thread {
                self.threads.refer(event.capture_thread);
            }
            if event.label_list != 0 {
                self.label_lists.refer(event.label_list.into());
            }
        }
    }

    /// Takes the next record that is neither an event nor metadata.
    pub(super) fn record(&mut self, record: &Record<'_>) {
        match record {
            Record::Trace(trace) => self.has_indexes = trace.version == Version::V6,
            Record::Stack(stack) => self.stacks.declare(stack.id.into()),
            Record::LabelList(list) => self.label_lists.declare(list.id.into()),
            Record::Thread(thread) => self.threads.declare(thread.index),
            Record::RemoveThread(row) => self.threads.remove(row.thread),
            Record::SequencePoint(point) => {
                self.stacks.remove_all();
                self.label_lists.remove_all();
                if point.flushes_metadata() {
                    self.metadata.remove_all();
                }
                if point.flushes_threads() {
                    self.threads.remove_all();
                }
            }
            _ => {}
        }
    }

    /// Takes the number of a description.
    pub(super) fn describe(&mut self, id: u32) {
        self.metadata.declare(id.into());
    }

    /// Returns the counts that are not 0, for people.
    pub(super) fn text(&self) -> Option<String> {
        let mut parts = Vec::new();
        for (name, table) in [
            ("metadata", &self.metadata),
            ("threads", &self.threads),
            ("stacks", &self.stacks),
            ("label lists", &self.label_lists),
        ] {
            let Counts { undeclared, removed, declared_twice, removed_twice } = table.counts;
            let kinds = [
                (undeclared, "references to undeclared"),
                (removed, "references to removed"),
                (declared_twice, "second declarations of"),
                (removed_twice, "second removals of"),
            ];
            let found = kinds.iter().filter(|(count, _)| *count > 0);
            parts.extend(found.map(|(count, what)| format!("{count} {what} {name}")));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}
