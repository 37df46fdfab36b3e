//! `FakeHeap`: the heap of a fake runtime.
use core::str::FromStr;

/// The objects, the references and the roots that a fake runtime reports to a session for a heap snapshot, as a text.
///
/// The text has parts, divided by commas. `N` is a number of objects.
///
/// | part | objects |
/// |---|---|
/// | `list=N` | `Fake.Node`: each refers to the next one; a static variable has the first |
/// | `cycle=N` | `Fake.Cycle`: each refers to the next one, the last to the first; no root |
/// | `roots=N` | `Fake.Rooted`: N for each kind of root, from variables to overflowed handles |
/// | `weak=N` | `Fake.Weak`: each has a weak root only |
/// | `com=N` | `Fake.Com`: N that native code holds, and N `Fake.Rcw` that hold native objects |
/// | `conditional=N` | `Fake.Key` and `Fake.Value`: N keys of a `ConditionalWeakTable` with their values |
/// | `thread-static=N` | `Fake.OfThread`: each in a static variable of a thread |
/// | `lost=N` | none, but each N-th event with objects or references is lost |
/// | `32-bit` | none, but addresses have 4 bytes |
/// | `no-collection` | none, but the stream has no start and no end of the collection, as that of NativeAOT |
/// | `no-end` | none, but the stream has no end of the collection |
///
/// Each object has 24 bytes.
///
/// ```
/// use ipc_testkit::FakeHeap;
///
/// let heap: FakeHeap = "list=1000,roots=30,32-bit".parse()?;
/// assert!("list=many".parse::<FakeHeap>().is_err());
/// # drop(heap);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FakeHeap {
    pub(super) list: u32,
    pub(super) cycle: u32,
    pub(super) roots: u32,
    pub(super) weak: u32,
    pub(super) com: u32,
    pub(super) conditional: u32,
    pub(super) thread_static: u32,
    pub(super) lost: u32,
    pub(super) is_32_bit: bool,
    pub(super) has_no_collection: bool,
    pub(super) has_no_end: bool,
}

impl FromStr for FakeHeap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut heap = Self::default();
        for part in text.split(',') {
            let (name, number) = part.split_once('=').unwrap_or((part, ""));
            let count = match name {
                "list" => &mut heap.list,
                "cycle" => &mut heap.cycle,
                "roots" => &mut heap.roots,
                "weak" => &mut heap.weak,
                "com" => &mut heap.com,
                "conditional" => &mut heap.conditional,
                "thread-static" => &mut heap.thread_static,
                "lost" => &mut heap.lost,
                "32-bit" if part == name => {
                    heap.is_32_bit = true;
                    continue;
                }
                "no-collection" if part == name => {
                    heap.has_no_collection = true;
                    continue;
                }
                "no-end" if part == name => {
                    heap.has_no_end = true;
                    continue;
                }
                _ => return Err(format!("a heap has no part {part:?}")),
            };
            *count = number.parse().map_err(|_| format!("{name}={number}: not a number of objects"))?;
        }
        Ok(heap)
    }
}
