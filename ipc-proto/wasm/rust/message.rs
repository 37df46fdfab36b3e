//! Messages of the protocol: their parts, the requests, and the values that runtimes refuse.
use core::fmt::Display;

use ipc_proto::wire::{Part, PartValue, Writer};
use ipc_proto::{Code, Encode, Message, Parsed, RequestError};
use nettrace::Str;

use crate::memory;
use crate::output::{Item, Kind, Output};

/// A row of the table of commands.
struct Row {
    code: u16,
    name: &'static str,
    specification_name: &'static str,
    since: u8,
    response: &'static str,
    /// Names and types of the fields, in the words of Rust.
    fields: &'static [(&'static str, &'static str)],
}

macro_rules! commands {
    ($([
        $code:literal $name:ident / $specification_name:ident since $since:literal:
        $request:ty { $($field:ident: $ty:ty,)* }
        -> $response_name:ident: $response:ty, then $then:ident
    ])*) => {
        const COMMANDS: &[Row] = &[$(Row {
            code: $code,
            name: stringify!($name),
            specification_name: stringify!($specification_name),
            since: $since,
            response: stringify!($response_name),
            fields: &[$((stringify!($field), stringify!($ty)),)*],
        },)*];
    };
}
ipc_proto::for_each_command!(commands);

/// Describes all commands: one object each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn describe_commands(output: *mut Output) {
    // SAFETY: the caller vouches for the address.
    let output = unsafe { Output::begin(output) };
    for row in COMMANDS {
        output.add(row.name, Item::mark(Kind::BeginObject));
        output.add("code", Item::number(row.code.into()));
        output.add("specification_name", Item::text(row.specification_name.into()));
        output.add("since", Item::number(row.since.into()));
        output.add("response", Item::text(row.response.into()));
        output.add("fields", Item::mark(Kind::BeginObject));
        for &(name, ty) in row.fields {
            output.add(name, Item::text(ty.into()));
        }
        output.push(Item::mark(Kind::EndObject));
        output.push(Item::mark(Kind::EndObject));
    }
}

/// Returns the parts of the message at the front of the bytes, in order.
///
/// The first item is the number `used`, the length of the message; or `needed`, the length that is needed, as far as it
/// is known. A fault is the last item, and names its field. `answer_to` is the code of the command that an answer
/// belongs to, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inspect_message(bytes: *const u8, len: usize, answer_to: u32, output: *mut Output) {
    // SAFETY: the caller vouches for the address.
    let bytes = unsafe { memory::bytes(bytes, len) };
    // SAFETY: the caller vouches for the address.
    let output = unsafe { Output::begin(output) };
    let number = |number: usize| Item::number(number.try_into().unwrap_or_default());
    match Message::parse(bytes) {
        Ok(Parsed::Complete { used, .. }) => output.add("used", number(used)),
        Ok(Parsed::Partial { needed }) => output.add("needed", number(needed)),
        Err(_) => output.add("used", number(0)),
    }
    let command = u16::try_from(answer_to).ok().filter(|code| *code != 0).map(Code);
    if let Err(error) = Message::inspect(bytes, command, &mut |part| output.add_at(&part.path, item(part))) {
        match Message::field_at(bytes, command, error.offset) {
            Some(field) => output.fault(error.offset, &format_args!("{field}: {}", error.kind)),
            None => output.fault(error.offset, &error.kind),
        }
    }
}

fn item(part: &Part<'_>) -> Item {
    let item = match part.value {
        PartValue::Number { number, name } => match u64::try_from(number) {
            Ok(number) => Item::number(number),
            Err(_) => Item::signed(i64::try_from(number).unwrap_or_default()),
        }
        .labelled(name),
        PartValue::Bool(value) => Item::boolean(value),
        PartValue::Text(text) => match text.as_wire() {
            Some(units) => Item::text(Str::Utf16(units)),
            None => Item::mark(Kind::Null),
        },
        PartValue::Guid(guid) => Item::guid(guid),
        PartValue::HResult(code) => Item::number(code.0.into()).labelled(code.name()),
        PartValue::Reserved(number) => Item::number(number.into()),
        _ => Item::bytes(Kind::Bytes, part.bytes),
    };
    item.at(part.offset, part.bytes.len())
}

/// A payload that is encoded already.
struct Payload<'p>(&'p [u8]);

impl Encode for Payload<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.bytes(self.0);
    }
}

/// Writes the request that has this code and payload, and returns its length. If the request would be too long, or the
/// payload does not fit the command, returns 0 and adds a fault to `output`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn encode_request(
    code: u32,
    payload: *const u8,
    len: usize,
    buf: *mut u8,
    size: usize,
    output: *mut Output,
) -> usize {
    // SAFETY: the caller vouches for the address.
    let payload = Payload(unsafe { memory::bytes(payload, len) });
    // SAFETY: the caller vouches for the address.
    let buf = unsafe { memory::space(buf, size) };
    // SAFETY: the caller vouches for the address.
    let output = unsafe { Output::begin(output) };
    let message = match ipc_proto::encode(Code(u16::try_from(code).unwrap_or_default()), &payload, buf) {
        Ok(message) => message,
        Err(error) => {
            fail(output, &error);
            return 0;
        }
    };
    if let Ok(Parsed::Complete { value, used }) = Message::parse(message) {
        match value.request() {
            Ok(_) => return used,
            Err(error) => output.fault(error.offset, &error.kind),
        }
    }
    0
}

/// Checks the request at the front of the bytes as a runtime does before it carries out the command: what it refuses is a
/// fault.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn check_request(bytes: *const u8, len: usize, output: *mut Output) {
    // SAFETY: the caller vouches for the address.
    let bytes = unsafe { memory::bytes(bytes, len) };
    // SAFETY: the caller vouches for the address.
    let output = unsafe { Output::begin(output) };
    let checked = match Message::parse(bytes) {
        Ok(Parsed::Complete { value, .. }) => value.request().map_err(RequestError::from),
        Ok(Parsed::Partial { .. }) => return fail(output, &"the message is not complete"),
        Err(error) => Err(error.into()),
    };
    match checked.and_then(|request| request.into_checked()) {
        Ok(_) => {}
        Err(RequestError::Decode(error)) => output.fault(error.offset, &error.kind),
        Err(error) => fail(output, &error),
    }
}

fn fail(output: &mut Output, error: &dyn Display) {
    let [address, len] = output.write(error);
    output.push(Item::error(address, len));
}
