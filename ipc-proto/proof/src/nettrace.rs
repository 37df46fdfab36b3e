//! The functions for NetTrace.
use core::fmt::Display;
use core::hash::Hash;
use core::ops::ControlFlow;

use ipc_proto::Decode;
use ipc_proto::wire::{WireError, WireErrorKind};
use nettrace::*;

use crate::wire::{Sum, value};
use crate::{each, proves, proves_each};

proves_each! { NETTRACE_WIRE: value, Varint32, Varint64, Zigzag64 }

proves! { READ:
    Parser::new, Parser::next, try_for_each_event, Parser::is_before_event, Parser::release, Parser::offset, Parser::version,
    Parser::skip_block, Parser::finish, Parser::object_name, <Limits as Default>::default,
    BlockKind::name, TimeRange::overlaps, TimeFilter::new, TimeFilter::keeps, TimeFilter::record, TimeFilter::event, TimeFilter::skipped_blocks,
    TimeFilter::is_contradicted, Event::without_payload, Version::number, Trace::new, Trace::check,
    CalendarTime::from_unix, CalendarTime::to_unix, CalendarTime::is_valid,
    <CalendarTime as Default>::default, <CalendarTime as Decode<'_>>::decode,
    <CalendarTime as Decode<'_>>::inspect, <CalendarTime as Decode<'_>>::shown,
    Pairs::from_bytes, Pairs::as_bytes, <Pairs<'_> as Iterator>::next,
    Labels::from_bytes, Labels::as_bytes, <Labels<'_> as Iterator>::next,
    ThreadEntries::from_bytes, ThreadEntries::as_bytes, <ThreadEntries<'_> as Iterator>::next,
    Thread::name, Thread::process_id, Thread::thread_id, call_stack,
    SequencePoint::flushes_threads, SequencePoint::flushes_metadata,
}

fn try_for_each_event<'w>(
    parser: &mut Parser,
    window: &'w [u8],
    take: &mut dyn FnMut(&Event<'w>) -> ControlFlow<u32>,
) -> ControlFlow<u32> {
    parser.try_for_each_event(window, take)
}

fn call_stack(stack: &[u8], pointer_size: u32, visit: &mut dyn FnMut(u64)) {
    each(frames(stack, pointer_size), visit);
}

proves! { DESCRIBE:
    Metadata::new, Metadata::decode, attributes, clr::describe, FieldType::array, <FieldType<'_> as From<Scalar>>::from,
    Fields::len, Fields::is_empty, Fields::iter, Fields::values, Fields::build::<Scalar>, Fields::build::<FieldType<'_>>, <Fields<'_> as Default>::default,
    <Fields<'_> as IntoIterator>::into_iter, <FieldIter<'_> as Iterator>::next, Element::field_type, Scalar::code,
    Scalar::number, Scalar::from_number, shapes, IndexedValues::<'_, '_, FieldShape>::new,
    <IndexedValues<'_, '_, FieldShape> as Iterator>::next, IndexedValues::<'_, '_, FieldShape>::error,
    IndexedValues::<'_, '_, FieldShape>::finish,
    <Fields<'_> as PartialEq>::eq, Scalar::decode,
    <Values<'_> as Iterator>::next, Values::finish, Values::error, Values::field,
    Value::as_bool, Value::as_u64, Value::as_i64, Value::as_f64, Value::as_str, Value::as_bytes, Value::as_guid,
    Value::as_time,
    TraceClock::new, TraceClock::nanoseconds, TraceClock::unix_nanoseconds, TraceClock::unix_start, TraceClock::ticks,
    <TraceClock as Default>::default,
    Str::is_empty, units, chars, <Str<'_> as Default>::default, <Str<'_> as From<&str>>::from,
    <Str<'_> as PartialEq>::eq, <Str<'_> as PartialEq<str>>::eq, <Str<'_> as PartialEq<&str>>::eq,
    <Str<'_> as PartialOrd>::partial_cmp,
    <Str<'_> as Ord>::cmp, <Str<'_> as Hash>::hash::<Sum>,
}

fn attributes<'a>(metadata: &Metadata<'a>, visit: &mut dyn FnMut((Str<'a>, Str<'a>))) {
    each(metadata.attributes.iter(), visit);
}

fn shapes<'a>(fields: &Fields<'a>, put: &mut dyn FnMut(u32, Str<'a>, FieldShape)) -> u32 {
    fields.shapes(put)
}

fn units(text: &Str<'_>, visit: &mut dyn FnMut(u16)) {
    each(text.units(), visit);
}

fn chars(text: &Str<'_>, visit: &mut dyn FnMut(char)) {
    each(text.chars(), visit);
}

type Losses = LossCounter<&'static mut [Slot<Counter>]>;
type Times = Order<&'static mut [Held<(Event<'static>, u64)>]>;
type Map = IdMap<&'static mut [Slot<Metadata<'static>>]>;

proves! { KEEP:
    Losses::new, Losses::resync, Losses::record, Losses::event, Losses::lost_after_start, Losses::lost_at_start, Losses::losses, Losses::gaps,
    Losses::went_back, Losses::untracked, threads,
    Times::new, Times::len, Times::is_empty, Times::late, Times::push, Times::release, Times::release_all, Times::pop,
    waiting, <Held<u64> as Default>::default,
    Store::new, Store::insert, Store::get, Store::clear,
    Map::new, Map::len, Map::is_empty, Map::get, Map::get_mut, Map::insert, IdMap::<&mut [Slot<u64>]>::remove, Map::clear,
    items, slots::<[u8]>, slots::<[u8; 4]>, slots::<&mut [u8]>,
}

fn threads(loss: &Losses, visit: &mut dyn FnMut((u64, u64))) {
    each(loss.threads(), visit);
}

fn items<'m>(map: &'m Map, visit: &mut dyn FnMut((u64, &'m Metadata<'static>))) {
    each(map.iter(), visit);
}

fn waiting<'o>(order: &'o mut Times, visit: &mut dyn FnMut(&'o mut (Event<'static>, u64))) {
    each(order.iter_mut(), visit);
}

fn slots<B: Backing<Slot = u8> + ?Sized>(backing: &mut B) -> (bool, usize, usize) {
    (backing.grow(), backing.slots().len(), backing.slots_mut().len())
}

proves! { WRITE:
    TraceWriter::new, TraceWriter::version, TraceWriter::flush, TraceWriter::finish, TraceWriter::metadata, TraceWriter::describe,
    TraceWriter::stack, TraceWriter::event, TraceWriter::sequence_point, TraceWriter::thread_sequence, thread, TraceWriter::remove_thread,
    label_list, <TraceBytes<'_> as core::ops::Deref>::deref, <TraceBytes<'_> as AsRef<[u8]>>::as_ref, <TraceBytes<'_> as Default>::default,
    Rewrite::new, Rewrite::record, Rewrite::finish, RewriteEnd::next_bytes, Rewrite::resync, Rewrite::counts, EventSelector::keeps, RewriteOptions::keeps_names, <RewriteOptions<'_> as Default>::default,
    <RewriteError as From<WriteError>>::from, <RewriteError as core::error::Error>::source,
    <End as From<BadBlock>>::from,
}

proves! { PAYLOAD:
    PayloadWriter::new, PayloadWriter::finish, PayloadWriter::boolean32, PayloadWriter::boolean8, PayloadWriter::utf16_code_unit,
    PayloadWriter::utf8_code_unit, PayloadWriter::sbyte, PayloadWriter::byte, PayloadWriter::int16, PayloadWriter::uint16,
    PayloadWriter::int32, PayloadWriter::uint32, PayloadWriter::int64, PayloadWriter::uint64, PayloadWriter::var_int,
    PayloadWriter::var_uint, PayloadWriter::single, PayloadWriter::double, PayloadWriter::decimal, PayloadWriter::date_time,
    PayloadWriter::guid, PayloadWriter::utf16_string::<Str<'_>>, PayloadWriter::utf8_string::<Str<'_>>,
    PayloadWriter::byte_array, texts,
}

fn texts<'b>(payload: PayloadWriter<'b>, texts: &[Str<'_>]) -> PayloadWriter<'b> {
    payload.array(texts, |payload, text| payload.utf16_string(*text))
}

fn thread<'w>(
    writer: &'w mut TraceWriter<'_>,
    index: u64,
    entries: ThreadEntries<'_>,
) -> Result<TraceBytes<'w>, WriteError> {
    writer.thread(index, entries)
}

fn label_list<'w>(
    writer: &'w mut TraceWriter<'_>,
    id: u32,
    labels: Labels<'_>,
) -> Result<TraceBytes<'w>, WriteError> {
    writer.label_list(id, labels)
}

proves! { NETTRACE_DISPLAY:
    <BadBlock as Display>::fmt, <Corruption as Display>::fmt, <End as Display>::fmt, <Truncation as Display>::fmt,
    <RewriteError as Display>::fmt, <StoreFull as Display>::fmt, <Str<'_> as Display>::fmt, <Version as Display>::fmt,
    <FileTime as Display>::fmt, <InvalidTrace as Display>::fmt, <WriteError as Display>::fmt,
    <DecodeError as Display>::fmt, <DecodeErrorKind as Display>::fmt,
    <DecodeError as From<WireError>>::from, <DecodeErrorKind as From<WireErrorKind>>::from,
}
