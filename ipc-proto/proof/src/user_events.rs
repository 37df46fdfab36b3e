//! The functions for `user_events`.
use core::fmt::Display;
use core::str::FromStr;

use ipc_proto::Text;
use ipc_proto::types::{TracepointConfig, TracepointFormat, TracepointFormatError};
use nettrace::user_events::*;

use crate::{each, proves};

proves! { USER_EVENTS:
    Extension::new, Extension::build, Extension::as_bytes, Extension::iter,
    <Extension<'_> as IntoIterator>::into_iter, <ExtensionItems<'_> as Iterator>::next,
    InlineMetadata::new, InlineMetadata::build, InlineMetadata::as_bytes, InlineMetadata::decode,
    InlineMetadata::decode_as,
    TracepointRecord::decode, TracepointRecord::encode, TracepointRecord::header,
    tracepoint_format, TracepointFormat::as_str, TracepointFormat::as_c_str, TracepointFormat::name,
    <TracepointFormat as FromStr>::from_str, <TracepointFormat as Display>::fmt,
    <TracepointFormatError as Display>::fmt,
    UserReg::new, UserReg::to_bytes, UserReg::write_index, UserReg::unreg, UserUnreg::to_bytes,
    TracepointConfig::tracepoint_name, tracepoint_names, WrittenKinds::new, WrittenKinds::contains, WrittenKinds::insert,
}

fn tracepoint_format(name: Text<'_>) -> Result<TracepointFormat, TracepointFormatError> {
    TracepointFormat::new(name)
}

fn tracepoint_names<'a>(config: &TracepointConfig<'a>, visit: &mut dyn FnMut(Text<'a>)) {
    each(config.tracepoint_names(), visit);
}
