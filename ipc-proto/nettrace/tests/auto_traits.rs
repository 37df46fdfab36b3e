//! The public types can be sent to another thread, shared with it, and moved after they were pinned. The compiler
//! derives these traits from private fields, so that a new field could remove them.
use core::error::Error;

use nettrace::user_events::*;
use nettrace::*;

fn crosses_threads<T: Send + Sync + Unpin>() {}

/// An error can be returned from a thread, and stored as `Box<dyn Error + Send + Sync>`.
fn is_error<T: Error + Send + Sync + Unpin + 'static>() {}

#[test]
fn machines_cross_threads() {
    crosses_threads::<Parser>();
    crosses_threads::<TraceWriter<'_>>();
    crosses_threads::<PayloadWriter<'_>>();
    crosses_threads::<Rewrite<'_>>();
    crosses_threads::<LossCounter<&mut [Slot<Counter>]>>();
    crosses_threads::<Order<&mut [Held<Event<'_>>]>>();
    crosses_threads::<IdMap<&mut [Slot<Metadata<'_>>]>>();
    crosses_threads::<Store<'_>>();
    #[cfg(feature = "alloc")]
    crosses_threads::<ParserBuf>();
    #[cfg(feature = "alloc")]
    crosses_threads::<EventAssembler>();
    #[cfg(feature = "alloc")]
    crosses_threads::<WholeTrace<'_>>();
    #[cfg(feature = "std")]
    crosses_threads::<TraceReader<std::fs::File>>();
    #[cfg(feature = "alloc")]
    crosses_threads::<MetadataCache>();
}

#[test]
fn values_cross_threads() {
    crosses_threads::<Record<'_>>();
    crosses_threads::<Metadata<'_>>();
    crosses_threads::<Values<'_>>();
    crosses_threads::<Value<'_>>();
    crosses_threads::<Str<'_>>();
    crosses_threads::<TimeFilter>();
    crosses_threads::<TracepointRecord<'_>>();
    crosses_threads::<InlineMetadata<'_>>();
    #[cfg(feature = "alloc")]
    crosses_threads::<TraceEvent<'_>>();
    #[cfg(feature = "alloc")]
    crosses_threads::<MetadataBuf>();
}

#[test]
fn errors_cross_threads() {
    is_error::<DecodeError>();
    is_error::<InvalidTrace>();
    is_error::<WriteError>();
    is_error::<RewriteError>();
    is_error::<StoreFull>();
}
