//! The protocol before it was one.
use core::fmt::Display;
use core::str::FromStr;

use ipc_proto::HResult;
use ipc_proto::legacy::{self, CollectTracing, ErrorCode, OldMessageType, OldRequest, Provider, SocketName};

use crate::command::command;
use crate::wire::value;
use crate::{proves, proves_each};

proves_each! { LEGACY_WIRE: value, CollectTracing<'_>, Provider<'_>, ErrorCode, OldMessageType, OldRequest<'_> }
proves_each! { LEGACY_COMMANDS: command, CollectTracing<'_> }

proves! { LEGACY:
    legacy::recognise, ErrorCode::name, OldMessageType::name, <HResult as From<ErrorCode>>::from,
    <SocketName as FromStr>::from_str, <SocketName as Display>::fmt,
}
