//! Events through the kernel.
use core::fmt::Display;
use core::str::FromStr;

use ipc_proto::Text;
use ipc_proto::user_events::*;

use crate::proves;

proves! { USER_EVENTS:
    Extension::new, Extension::build, Extension::as_bytes, Extension::iter,
    <Extension<'_> as IntoIterator>::into_iter, <Items<'_> as Iterator>::next,
    InlineMetadata::new, InlineMetadata::build, InlineMetadata::as_bytes, InlineMetadata::decode,
    Record::decode, Record::decode_written, Record::encode, Record::header,
    tracepoint_format, TracepointFormat::as_str, TracepointFormat::as_c_str, TracepointFormat::name,
    <TracepointFormat as FromStr>::from_str, <TracepointFormat as Display>::fmt,
    <TracepointFormatError as Display>::fmt,
}

fn tracepoint_format(name: Text<'_>) -> Result<TracepointFormat, TracepointFormatError> {
    TracepointFormat::new(name)
}
