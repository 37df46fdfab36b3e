//! A runtime's answer to a command: a response, or a refusal.
use crate::{
    Code, Command, DecodeError, GenerateCoreDump3, HResult, Message, ProtocolError, Response, ServerError,
};

/// A runtime's answer to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'b, R> {
    /// The command succeeded.
    Ok(R),
    /// The runtime refused the command.
    Refused(ServerError<'b>),
}

impl<'a> ServerError<'a> {
    /// Returns whether a refusal of this command contains an error message.
    #[must_use]
    pub const fn has_message(command: Code) -> bool {
        matches!(command, GenerateCoreDump3::CODE)
    }

    /// Decodes a refusal of the command with this code.
    pub(super) fn of(command: Code, refusal: &Message<'a>) -> Result<Self, DecodeError> {
        let code: HResult = refusal.decode()?;
        // The code of a refusal is valid even if the error message after the code is malformed.
        let error = if Self::has_message(command) { refusal.decode().ok() } else { None };
        Ok(error.unwrap_or_else(|| code.into()))
    }
}

impl<'a> Message<'a> {
    /// Decodes the payload as the answer to the command with this code. Bytes after the known fields are ignored.
    ///
    /// # Errors
    /// [`ProtocolError::Unexpected`] if the message is not an answer; [`ProtocolError::Decode`] if its payload is malformed.
    ///
    /// ```
    /// use ipc_proto::{Answer, Code, Command, Message, Response, StopTracing, types::SessionId};
    ///
    /// let message = Message { code: Code::OK, payload: &7u64.to_le_bytes() };
    /// let Answer::Ok(response) = message.response(StopTracing::CODE)? else { unreachable!() };
    /// assert_eq!(response, Response::StopTracing(SessionId { session_id: 7 }));
    /// # Ok::<(), ipc_proto::ProtocolError>(())
    /// ```
    pub fn response(&self, to: Code) -> Result<Answer<'a, Response<'a>>, ProtocolError> {
        match self.code {
            Code::OK => Ok(Answer::Ok(Response::decode(to, self)?)),
            Code::ERROR => Ok(Answer::Refused(ServerError::of(to, self)?)),
            other => Err(ProtocolError::Unexpected(other)),
        }
    }
}
