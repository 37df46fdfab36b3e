//! The functions for wire values and messages.
use core::fmt::Display;
use core::hash::{Hash, Hasher};
use core::str::FromStr;

use ipc_proto::types::*;
use ipc_proto::wire::{
    self, BufferTooSmall, Iter, ParseGuidError, Part, PartValue, Path, Reader, Units, Utf16, Visitor,
    WireError, WireErrorKind, Writer, steps,
};
use ipc_proto::{
    Advertise, Array, Code, Decode, DecodeError, DecodeErrorKind, Encode, EncodeError, FieldAt, FieldPath,
    Guid, HResult, InvalidValue, Message, ParsePipeNameError, ParseSocketNameError, PipeName, PipeNameText,
    ProtocolError, RequestError, RouterSocketName, ServerError, SocketName, SocketNameText, Text, Violation,
};

use crate::{Address, addresses, each, proves, proves_each};

/// Returns the functions of a value with a wire form.
pub(crate) const fn value<'a, T: Encode + Decode<'a>>() -> [Address; 9] {
    addresses! {
        <T as Encode>::encode, <T as Encode>::encoded_len, <T as Decode<'a>>::decode,
        <T as Decode<'a>>::inspect, <T as Decode<'a>>::shown, wire::decode::<T>, wire::decode_prefix::<T>,
        Message::decode::<T>, message::<T>,
    }
}

fn message<'b, T: Encode>(code: Code, payload: &T, buf: &'b mut [u8]) -> Result<&'b mut [u8], EncodeError> {
    ipc_proto::encode(code, payload, buf)
}

proves_each! { WIRE: value,
    u8, u16, u32, u64, i32, bool, Guid, HResult, Text<'_>, Advertise, ServerError<'_>,
    ClientData<'_>, DumpFlags, DumpType, EventFilter<'_>, EventLevel, Format, PerfMapType, Provider<'_>, SessionBufferMode,
    SessionConfig<'_>, SessionConfig6<'_>, StreamingProvider<'_>, StreamingSession<'_>, StreamingSession6<'_>,
    TracepointConfig<'_>, TracepointSet<'_>, UserEventsProvider<'_>, UserEventsSession<'_>,
    EnvironmentEntries<'_>, Array<'_, u32>, Array<'_, Provider<'_>>, Array<'_, StreamingProvider<'_>>,
    Array<'_, UserEventsProvider<'_>>, Array<'_, TracepointSet<'_>>,
}

/// Returns the functions of a list.
const fn array<T: Encode + Decode<'static> + Copy + Eq + Hash + 'static>() -> [Address; 14] {
    addresses! {
        Array::<T>::len, Array::<T>::is_empty, Array::<T>::as_wire, Array::<T>::iter,
        <Iter<'_, T> as Iterator>::next, <Iter<'_, T> as Iterator>::size_hint,
        <Array<'_, T> as Clone>::clone, <Array<'_, T> as Default>::default, <Array<'_, T> as PartialEq>::eq,
        <Array<'_, T> as Hash>::hash::<Sum>, <Array<'_, T> as IntoIterator>::into_iter,
        <&Array<'_, T> as IntoIterator>::into_iter, <Array<'_, T> as From<&[T]>>::from,
        <Array<'_, T> as From<&[T; 3]>>::from,
    }
}
proves_each! { ARRAY: array,
    u32, Text<'_>, Provider<'_>, StreamingProvider<'_>, UserEventsProvider<'_>, TracepointSet<'_>,
}

proves! { TEXT:
    Text::new, Text::from_utf16, Text::is_null, Text::is_empty, Text::non_null, Text::as_wire, Text::units, chars, utf16_chars,
    <Utf16<Units<'_>> as Display>::fmt, EnvironmentEntry::parse,
    <Units<'_> as Iterator>::next,
    <Text<'_> as From<&str>>::from, <Text<'_> as From<Option<&str>>>::from,
    <Text<'_> as PartialEq>::eq, <Text<'_> as PartialEq<str>>::eq, <Text<'_> as PartialEq<&str>>::eq,
    <Text<'_> as PartialOrd>::partial_cmp,
    <Text<'_> as Ord>::cmp, <Text<'_> as Hash>::hash::<Sum>,
    <Guid as FromStr>::from_str,
}

fn utf16_chars(text: &Text<'_>, visit: &mut dyn FnMut(char)) {
    each(Utf16(text.units()).chars(), visit);
}

fn chars(text: &Text<'_>, visit: &mut dyn FnMut(char)) {
    each(text.chars(), visit);
}

proves! { READ_WRITE:
    Reader::new, Reader::at, Reader::offset, Reader::rest, Reader::error, Reader::bytes, Reader::array::<1>,
    Reader::array::<16>, Reader::read::<Text<'_>>, show,
    Writer::new, Writer::window, Writer::len, Writer::is_empty, Writer::bytes, Writer::finish,
    Writer::ascii_units, Writer::patch, Writer::patch_u16, Writer::patch_u32, wire::copy, wire::number, steps::count,
    wire::low_u8, wire::low_u16, wire::low_u32, wire::to_u32, wire::to_u64, wire::to_usize,
    <&Text<'_> as Encode>::encode,
}

fn show<'a>(
    r: &mut Reader<'a>,
    path: Path<'_>,
    visit: &mut dyn Visitor,
    read: &dyn Fn(&mut Reader<'a>) -> Result<u32, WireError>,
) -> Result<u32, WireError> {
    r.show(path, visit, |r| read(r), |_, bytes| PartValue::Bytes(bytes))
}

proves! { MESSAGE:
    Message::parse, Message::request, inspect, visit, failed, Message::field_at, FieldPath::new, PartValue::problem, Code::set, Code::id, Advertise::parse,
    ServerError::has_message,
    OperatingSystem::name, OperatingSystem::of, Architecture::name, Architecture::of,
    arguments, ArgumentList::new, <ArgumentList<'_> as Display>::fmt, <ArgumentError as Display>::fmt,
    <ArgumentText<'_> as PartialEq<str>>::eq, <ArgumentText<'_> as PartialEq<&str>>::eq, <ArgumentText<'_> as Display>::fmt, argument_chars,
    HResult::name, HResult::old_name, HResult::hint, HResult::from_win32, DumpFlags::name, DumpType::name, EventLevel::name,
    Format::name, PerfMapType::name, SessionBufferMode::name, Violation::hresult,
    SocketName::to_text, SocketNameText::as_str, <SocketNameText as AsRef<str>>::as_ref,
    <SocketName as FromStr>::from_str,
    PipeName::to_text, PipeNameText::as_str, <PipeNameText as AsRef<str>>::as_ref, <PipeName as FromStr>::from_str,
    RouterSocketName::to_text, <RouterSocketName as FromStr>::from_str,
    <HResult as From<DecodeError>>::from, <HResult as From<RequestError<'_>>>::from, <HResult as From<InvalidValue>>::from,
    <RequestError<'_> as From<DecodeError>>::from,
    <DecodeError as From<WireError>>::from, <ProtocolError as From<WireError>>::from,
    <EncodeError as From<BufferTooSmall>>::from,
    <ProtocolError as From<DecodeError>>::from, <ServerError<'_> as From<HResult>>::from,
    <ProtocolError as core::error::Error>::source, <RequestError<'_> as core::error::Error>::source,
    <InvalidValue as core::error::Error>::source,
    <FieldPath as PartialEq>::eq, <FieldPath as Hash>::hash::<Sum>,
}

fn arguments<'a>(text: Text<'a>, visit: &mut dyn FnMut((ArgumentText<'a>, ArgumentText<'a>))) {
    each(ProviderArguments::new(text), visit);
}

fn argument_chars(text: &ArgumentText<'_>, visit: &mut dyn FnMut(char)) {
    each(text.chars(), visit);
}

fn visit(visitor: &mut dyn FnMut(&Part<'_>), part: &Part<'_>) {
    visitor.visit(part);
}

fn failed(visitor: &mut dyn FnMut(&Part<'_>), path: &Path<'_>, error: WireError) {
    visitor.failed(path, error);
}

fn inspect(
    bytes: &[u8],
    answer_to: Option<Code>,
    visit: &mut dyn FnMut(&Part<'_>),
) -> Result<(), DecodeError> {
    Message::inspect(bytes, answer_to, visit)
}

const fn display<T: Display>() -> [Address; 1] {
    [Address(<T as Display>::fmt as *const ())]
}
proves_each! { DISPLAY: display,
    Text<'_>, EnvironmentEntry<'_>, Guid, Path<'_>, Code, HResult, SocketName, PipeName, RouterSocketName, Violation, InvalidValue, FieldPath, FieldAt<'_>, ParseGuidError, ParsePipeNameError, ParseSocketNameError,
    WireError, WireErrorKind, BufferTooSmall, DecodeError, DecodeErrorKind, EncodeError, ProtocolError, RequestError<'_>,
}

/// A hasher that computes a simple sum.
pub(crate) struct Sum(u64);

impl Hasher for Sum {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(5).wrapping_add(u64::from(*byte)));
    }
}
