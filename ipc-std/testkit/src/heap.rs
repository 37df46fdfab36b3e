//! The heap of a fake runtime.
mod fake_heap;
#[cfg(feature = "io")]
mod heap_stream;

pub use self::fake_heap::FakeHeap;
#[cfg(feature = "io")]
pub(crate) use self::heap_stream::RUNTIME;
