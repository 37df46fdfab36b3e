//! Decodes and encodes every request and every response.
use ipc_proto::types::{ProcessEnvironment, ProcessInfo, ProcessInfo2, ProcessInfo3, SessionId, Status};
use ipc_proto::{Code, Decode, Encode, Message, Parsed, ServerError, encode};

use crate::register::{number, storage, write_bytes, write_number};

pub fn run() {
    let Ok(Parsed::Complete { value: message, .. }) = Message::parse(storage()) else { return };
    match number() {
        0 => {
            let Ok(request) = message.request() else { return };
            write_number(request.check().is_ok().into());
            written(request.code(), &request);
        }
        1 => answer::<Status>(&message),
        2 => answer::<SessionId>(&message),
        3 => answer::<ProcessEnvironment>(&message),
        4 => answer::<ProcessInfo<'_>>(&message),
        5 => answer::<ProcessInfo2<'_>>(&message),
        6 => answer::<ProcessInfo3<'_>>(&message),
        _ => answer::<ServerError<'_>>(&message),
    }
}

fn answer<T: Decode<'static> + Encode>(message: &Message<'static>) {
    if let Ok(answer) = message.decode::<T>() {
        written(message.code, &answer);
    }
}

fn written(code: Code, payload: &dyn Encode) {
    if let Ok(bytes) = encode(code, payload, storage()) {
        write_bytes(bytes);
    }
}
