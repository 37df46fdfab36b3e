//! The functions for the earlier protocols: the draft, and the protocol before the draft.
use core::fmt::Display;
use core::str::FromStr;

use ipc_proto::HResult;
use ipc_proto::legacy::{
    self, DraftCollectTracing, DraftErrorCode, DraftPipeName, DraftProvider, DraftSocketName, OldMessageType,
    OldRequest,
};

use crate::command::command;
use crate::wire::value;
use crate::{proves, proves_each};

proves_each! { LEGACY_WIRE: value, DraftCollectTracing<'_>, DraftProvider<'_>, DraftErrorCode, OldMessageType, OldRequest<'_> }
proves_each! { LEGACY_COMMANDS: command, DraftCollectTracing<'_> }

proves! { LEGACY:
    legacy::recognise, DraftErrorCode::name, OldMessageType::name, <HResult as From<DraftErrorCode>>::from,
    <DraftSocketName as FromStr>::from_str, <DraftSocketName as Display>::fmt,
    <DraftPipeName as FromStr>::from_str, <DraftPipeName as Display>::fmt,
}
