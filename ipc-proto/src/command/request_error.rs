//! [`RequestError`]: the reason why a server refuses the bytes of a client.
use core::fmt;

use super::field_path::FieldPath;
use super::invalid_value::InvalidValue;
use super::table::Request;
use super::violation::Violation;
use crate::{DecodeError, HResult};

/// The reason why a runtime refuses a message before the runtime carries out a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError<'a> {
    /// The bytes are not a request.
    Decode(DecodeError),
    /// The request has a value that runtimes refuse. A server that accepts the value can still answer OK.
    Violation {
        /// The request.
        request: Request<'a>,
        /// The rule that the value breaks.
        violation: Violation,
        /// The value that breaks the rule.
        place: FieldPath,
    },
    /// The server does not have the command: see [`Serve::finish_for`](crate::Serve::finish_for).
    Refused(HResult),
}

impl fmt::Display for RequestError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(e) => e.fmt(f),
            Self::Violation { violation, place, .. } => {
                InvalidValue { violation: *violation, place: *place }.fmt(f)
            }
            Self::Refused(hresult) => write!(f, "the server does not have the command ({hresult})"),
        }
    }
}
impl core::error::Error for RequestError<'_> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Decode(e) => Some(e),
            Self::Violation { violation, .. } => Some(violation),
            Self::Refused(_) => None,
        }
    }
}
impl From<DecodeError> for RequestError<'_> {
    fn from(e: DecodeError) -> Self {
        Self::Decode(e)
    }
}
impl From<RequestError<'_>> for HResult {
    fn from(e: RequestError<'_>) -> Self {
        match e {
            RequestError::Decode(e) => e.into(),
            RequestError::Violation { violation, .. } => violation.hresult(),
            RequestError::Refused(hresult) => hresult,
        }
    }
}

impl<'a> Request<'a> {
    /// Returns the request if its values pass [`check`](Self::check).
    ///
    /// # Errors
    /// [`RequestError::Violation`], with the request.
    pub fn into_checked(self) -> Result<Self, RequestError<'a>> {
        match self.check() {
            Ok(()) => Ok(self),
            Err(InvalidValue { violation, place }) => {
                Err(RequestError::Violation { request: self, violation, place })
            }
        }
    }
}
