//! What usual types of the framework mostly mean in a heap.

/// The beginnings of names of types, and what many bytes or objects of them mean.
const MEANINGS: &[(&str, &str)] = &[
    ("System.Byte[]", "buffers of streams, sockets and ArrayPool; over 85,000 bytes they are large objects"),
    ("System.Char[]", "buffers of text readers, writers and StringBuilder"),
    ("System.String", "texts; many small ones come from parsing, few large ones from whole documents"),
    ("System.Threading.Tasks.Task", "operations that have not ended, or whose results are kept"),
    ("System.Runtime.CompilerServices.AsyncTaskMethodBuilder", "asynchronous methods that wait"),
    ("System.Threading.TimerQueueTimer", "timers that were not disposed, also those of time-outs"),
    ("System.Threading.CancellationTokenSource", "sources of cancellation that were not disposed"),
    ("System.Net.Http.HttpConnectionPool", "a pool for each HttpClientHandler: share the HttpClient"),
    ("System.Net.Http.HttpConnection", "open connections of HttpClient"),
    ("System.Collections.Concurrent.ConcurrentDictionary", "caches without a limit, often"),
    ("System.Collections.Generic.Dictionary", "tables; the bytes are in their arrays of entries"),
    ("System.Diagnostics.Activity", "activities of traces that were not stopped or not exported"),
    ("System.WeakReference", "weak references, which event sources and caches keep"),
    ("System.Reflection.Emit", "code that is generated while the program runs, often again and again"),
    ("Free", "room between objects that the collector has not given back"),
];

/// Returns what many objects of a type mostly mean; `None` for types that say enough.
pub(super) fn meaning(name: &str) -> Option<&'static str> {
    let is_of = |begin: &str| {
        name.strip_prefix(begin)
            .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '['))
    };
    MEANINGS.iter().find(|(begin, _)| is_of(begin)).map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::meaning;

    #[test]
    fn a_meaning_belongs_to_whole_names() {
        assert!(meaning("System.String").is_some_and(|meaning| meaning.starts_with("texts")));
        assert!(meaning("System.Threading.Tasks.Task<System.Int32>").is_some());
        assert_eq!(meaning("System.StringComparer"), None);
        assert_eq!(meaning("System.String[]"), None);
    }
}
