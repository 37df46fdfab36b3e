//! Commands: what one is, and the table that lists them all.
#[macro_use]
mod define;
pub(crate) mod check;
pub mod plan;
pub(crate) mod table;
pub mod types;

use crate::{Code, Decode, Encode, Request};

/// A command: what a tool asks of a runtime.
///
/// Its fields are its payload; [`encode`](crate::encode) puts the header before them. Implement it for a private
/// command of your own, and [`Call`](crate::Call) and [`Reply`](crate::Reply) carry that too.
///
/// ```
/// use ipc_proto::{Command, GetProcessInfo2};
/// assert_eq!(GetProcessInfo2::CODE.to_string(), "0x0404");
/// assert_eq!(GetProcessInfo2::SPECIFICATION_NAME, "ProcessInfo2");
/// ```
pub trait Command: Encode {
    /// Its set and id.
    const CODE: Code;
    /// Its name here, which is that of Microsoft's client.
    const NAME: &'static str;
    /// Its name in the specification.
    const SPECIFICATION_NAME: &'static str;
    /// The first major version of .NET that knows it.
    const SINCE: u8;
    /// What the payload of an OK answer holds.
    type Response<'r>: Decode<'r> + Encode;

    /// What follows the OK answer on the same connection.
    fn continuation(&self) -> Continuation;
}

/// What follows an OK answer on the same connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    /// Nothing: the runtime closes the connection.
    Nothing,
    /// As many bytes as the answer says; see [`ReceiveEnvironment`](crate::ReceiveEnvironment).
    Counted,
    /// A NetTrace stream, up to the end of the connection.
    Stream,
    /// Nothing, but the connection stays open as long as the session lives. Before the answer comes, one descriptor of
    /// `user_events_data` must follow the request: by a `sendmsg` of its own, with one byte of data that no size counts.
    UserEvents,
}

/// A row of the table, for code that treats all commands alike.
///
/// ```
/// use ipc_proto::{Code, CommandInfo, Request};
/// let row = CommandInfo::find(Code(0x0402)).unwrap();
/// assert_eq!((row.name, row.since), ("GetProcessEnvironment", 5));
/// assert!(Request::ALL.contains(row));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandInfo {
    /// [`Command::CODE`].
    pub code: Code,
    /// [`Command::NAME`].
    pub name: &'static str,
    /// [`Command::SPECIFICATION_NAME`].
    pub specification_name: &'static str,
    /// [`Command::SINCE`].
    pub since: u8,
    /// The name of [`Command::Response`].
    pub response: &'static str,
}

impl CommandInfo {
    /// The row of this code.
    #[must_use]
    pub fn find(code: Code) -> Option<&'static Self> {
        Request::ALL.iter().find(|row| row.code == code)
    }
}
