//! NetTrace.
use core::fmt::Display;
use core::hash::Hash;

use ipc_proto::Decode;
use ipc_proto::nettrace::*;

use crate::wire::{Sum, value};
use crate::{each, proves, proves_each};

proves_each! { NETTRACE_WIRE: value, Varint32, Varint64, Zigzag64 }

proves! { READ:
    Parser::new, Parser::next, Parser::next_event, Parser::release, Parser::offset, Parser::version,
    Parser::skip_block, Parser::take_block, Parser::finish, Parser::object_name, <Limits as Default>::default,
    BlockKind::name, Event::known_processor, Event::without_payload, Version::number, Trace::new,
    <SystemTime as Decode<'_>>::decode,
    <SystemTime as Decode<'_>>::inspect, <SystemTime as Decode<'_>>::shown,
    Pairs::from_bytes, Pairs::as_bytes, <Pairs<'_> as Iterator>::next,
    Labels::from_bytes, Labels::as_bytes, <Labels<'_> as Iterator>::next,
    ThreadEntries::from_bytes, ThreadEntries::as_bytes, <ThreadEntries<'_> as Iterator>::next,
    Thread::name, Thread::process_id, Thread::thread_id, call_stack,
    SequencePoint::flushes_threads, SequencePoint::flushes_metadata,
}

fn call_stack(stack: &[u8], pointer_size: u32, see: &mut dyn FnMut(u64)) {
    each(frames(stack, pointer_size), see);
}

proves! { DESCRIBE:
    Metadata::decode, attributes, clr::describe,
    Fields::len, Fields::is_empty, Fields::iter, Fields::values, Fields::build, <Fields<'_> as Default>::default,
    <Fields<'_> as IntoIterator>::into_iter, <FieldIter<'_> as Iterator>::next, Element::field_type, Scalar::code,
    <Values<'_> as Iterator>::next, Values::finish, Values::error, FileTime::unix_100ns,
    Str::is_empty, units, chars, <Str<'_> as Default>::default, <Str<'_> as From<&str>>::from,
    <Str<'_> as PartialEq>::eq, <Str<'_> as PartialEq<str>>::eq, <Str<'_> as PartialEq<&str>>::eq,
    <Str<'_> as PartialOrd>::partial_cmp,
    <Str<'_> as Ord>::cmp, <Str<'_> as Hash>::hash::<Sum>,
}

fn attributes<'a>(metadata: &Metadata<'a>, see: &mut dyn FnMut((Str<'a>, Str<'a>))) {
    each(metadata.attributes.iter(), see);
}

fn units(text: &Str<'_>, see: &mut dyn FnMut(u16)) {
    each(text.units(), see);
}

fn chars(text: &Str<'_>, see: &mut dyn FnMut(char)) {
    each(text.chars(), see);
}

proves! { KEEP:
    Loss::new, Loss::step, Loss::event, Loss::lost, Loss::gaps, Loss::went_back, Loss::untracked, threads,
    Order::<(Event<'_>, u64)>::new, Order::<(Event<'_>, u64)>::len, Order::<(Event<'_>, u64)>::is_empty,
    Order::<(Event<'_>, u64)>::late, Order::<(Event<'_>, u64)>::push, Order::<(Event<'_>, u64)>::release,
    Order::<(Event<'_>, u64)>::release_all, Order::<(Event<'_>, u64)>::pop, <Held<u64> as Default>::default,
    Store::new, Store::insert, Store::get, Store::clear,
    Table::<Metadata<'_>>::new, Table::<Metadata<'_>>::len, Table::<Metadata<'_>>::is_empty,
    Table::<Metadata<'_>>::get, Table::<Metadata<'_>>::get_mut, Table::<Metadata<'_>>::insert, Table::<u64>::remove,
    Table::<Metadata<'_>>::clear, items,
}

fn threads(loss: &Loss<'_>, see: &mut dyn FnMut((u64, u64))) {
    each(loss.threads(), see);
}

fn items<'t>(table: &'t Table<'_, u64>, see: &mut dyn FnMut((u64, &'t u64))) {
    each(table.iter(), see);
}

proves! { WRITE:
    Writer::new, Writer::version, Writer::flush, Writer::finish, Writer::trace, Writer::metadata, Writer::describe,
    Writer::stack, Writer::event, Writer::sequence_point, Writer::thread_sequence, thread, Writer::remove_thread,
    label_list,
    Rewrite::new, Rewrite::step, Rewrite::finish, Rewrite::so_far, Only::keeps, <RewriteOptions<'_> as Default>::default,
    <RewriteError as From<WriteError>>::from, <RewriteError as core::error::Error>::source,
    <End as From<BadBlock>>::from,
}

fn thread<'w>(writer: &'w mut Writer<'_>, index: u64, entries: ThreadEntries<'_>) -> Written<'w> {
    writer.thread(index, entries)
}

fn label_list<'w>(writer: &'w mut Writer<'_>, id: u32, labels: Labels<'_>) -> Written<'w> {
    writer.label_list(id, labels)
}

proves! { NETTRACE_DISPLAY:
    <BadBlock as Display>::fmt, <Corruption as Display>::fmt, <End as Display>::fmt, <Truncation as Display>::fmt,
    <RewriteError as Display>::fmt, <Full as Display>::fmt, <Str<'_> as Display>::fmt, <Version as Display>::fmt,
    <FileTime as Display>::fmt, <WriteError as Display>::fmt,
}
