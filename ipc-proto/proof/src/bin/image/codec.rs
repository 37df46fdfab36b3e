//! Decodes and encodes every request and every response.
use ipc_proto::types::Status;
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
        2 => answer::<ServerError<'_>>(&message),
        _ => answers(&message),
    }
}

macro_rules! answers {
    ($([$name:ident: $response:ty { $($fields:tt)* }])*) => {
        fn answers<'r>(message: &Message<'r>) {
            let mut left = number();
            $(if left == 0 {
                return answer::<$response>(message);
            }
            left -= 1;)*
        }
    };
}
ipc_proto::for_each_response!(answers);

fn answer<'r, T: Decode<'r> + Encode>(message: &Message<'r>) {
    if let Ok(answer) = message.decode::<T>() {
        written(message.code, &answer);
    }
}

fn written(code: Code, payload: &dyn Encode) {
    if let Ok(bytes) = encode(code, payload, storage()) {
        write_bytes(bytes);
    }
}
