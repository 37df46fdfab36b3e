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
///
/// ```
/// use ipc_proto::types::{SessionConfig, UserEventsSession};
/// use ipc_proto::{Array, CollectTracing5, Continuation, Request, ResumeRuntime};
///
/// let session = SessionConfig::UserEvents(UserEventsSession { rundown_keyword: 0, providers: Array::EMPTY });
/// let request = Request::CollectTracing5(CollectTracing5 { session });
/// assert_eq!(request.continuation(), Continuation::UserEvents); // so a descriptor comes before the answer
/// assert_eq!(Request::ResumeRuntime(ResumeRuntime {}).continuation(), Continuation::Nothing);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    /// Nothing: the runtime closes the connection.
    Nothing,
    /// As many bytes as the answer says; see [`ReceiveEnvironment`](crate::ReceiveEnvironment).
    Counted,
    /// A NetTrace stream, up to the end of the connection.
    Stream,
    /// Nothing, but the connection stays open as long as the session lives; and before the answer a descriptor comes.
    /// An [`Exchange`](crate::Exchange) passes bytes only, so its driver passes the descriptor beside it:
    ///
    /// ```text
    /// tool                                                runtime
    /// CollectTracing5, all of it                       →  Serve, to its end
    /// sendmsg: 1 byte, whatever it is; SCM_RIGHTS with →  recvmsg: 1 byte; the descriptor, to be closed with
    ///   one descriptor of user_events_data                  the session
    /// Call, on to its end                              ←  Reply: the id of the session, or a refusal
    /// (the connection stays open)                         (nothing is sent; the session ends with the connection)
    /// ```
    ///
    /// The `sendmsg` is one of its own: what comes with bytes of the request is lost, as those are taken by plain reads.
    /// No size counts its byte. Where no descriptor comes, a runtime answers
    /// [`BAD_ENCODING`](crate::HResult::BAD_ENCODING); where it cannot register tracepoints,
    /// [`FAIL`](crate::HResult::FAIL), which is also what a driver answers that cannot take descriptors. Section
    /// "passing_file_descriptor" of the specification. What the tracepoints hold then is in
    /// [`user_events`](crate::user_events).
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
