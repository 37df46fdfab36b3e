//! [`Command`], the trait of commands; [`Continuation`], what follows an OK answer; [`CommandInfo`], a table row.
use crate::{Code, Decode, Encode, EncodeError, InvalidValue, encode};

/// A command: a request that a client sends and a runtime answers.
///
/// The fields of a command are its payload; [`encode`](crate::encode) writes the header before them.
///
/// A type of yours that implements `Command` works with [`Call`](crate::Call) and [`Reply`](crate::Reply) like the
/// commands of the table:
///
/// ```
/// use ipc_proto::types::Status;
/// use ipc_proto::{Code, Command, Continuation, Encode, wire::Writer};
///
/// struct Ping {
///     number: u32,
/// }
/// impl Encode for Ping {
///     fn encode(&self, w: &mut Writer<'_>) {
///         self.number.encode(w);
///     }
/// }
/// impl Command for Ping {
///     const CODE: Code = Code(0x7f01);
///     const NAME: &'static str = "Ping";
///     const SPECIFICATION_NAME: &'static str = "Ping";
///     const SINCE: u8 = 8;
///     type Response<'r> = Status;
///     fn continuation(&self) -> Continuation {
///         Continuation::Nothing
///     }
/// }
/// let mut buf = [0; 64];
/// let call = ipc_proto::Call::new(&Ping { number: 7 }, &mut buf)?;
/// assert_eq!(call.command(), Ping::CODE);
/// # Ok::<(), ipc_proto::EncodeError>(())
/// ```
pub trait Command: Encode {
    /// The code of the command.
    const CODE: Code;
    /// The name of the command, as in Microsoft's client.
    const NAME: &'static str;
    /// The name of the command in the specification.
    const SPECIFICATION_NAME: &'static str;
    /// The first major version of .NET with this command.
    const SINCE: u8;
    /// The type of the payload of an OK answer.
    type Response<'r>: Decode<'r> + Encode;

    /// Returns what follows the OK answer on the same connection.
    fn continuation(&self) -> Continuation;

    /// Checks the values of the fields. A client can call `check` before it sends the command; [`Serve`](crate::Serve)
    /// checks every request of the table. The default implementation accepts all values.
    ///
    /// Conditions that depend on the runtime, for example whether it is suspended, are not checked.
    ///
    /// # Errors
    /// The first value that breaks a rule, in the order in which runtimes check them, with its path and the rule.
    ///
    /// ```
    /// use ipc_proto::{Command, EnablePerfMap, Violation, types::PerfMapType};
    ///
    /// assert_eq!(EnablePerfMap { perf_map_type: PerfMapType::ALL }.check(), Ok(()));
    /// let refused = EnablePerfMap { perf_map_type: PerfMapType(4) }.check().unwrap_err();
    /// assert_eq!(refused.violation, Violation::PerfMapType);
    /// assert_eq!(refused.to_string(), "perf_map_type: the perf map type is not 1, 2 or 3");
    /// ```
    fn check(&self) -> Result<(), InvalidValue> {
        Ok(())
    }
}

impl<C: Command> Command for &C {
    const CODE: Code = C::CODE;
    const NAME: &'static str = C::NAME;
    const SPECIFICATION_NAME: &'static str = C::SPECIFICATION_NAME;
    const SINCE: u8 = C::SINCE;
    type Response<'r> = C::Response<'r>;

    fn continuation(&self) -> Continuation {
        (**self).continuation()
    }
    fn check(&self) -> Result<(), InvalidValue> {
        (**self).check()
    }
}

/// Writes a command as a whole message to the front of `buf` and returns its bytes.
///
/// # Errors
/// As [`encode`].
///
/// ```
/// use ipc_proto::{StopTracing, encode_command};
///
/// let mut buf = [0; 64];
/// let message = encode_command(&StopTracing { session_id: 7 }, &mut buf)?;
/// assert_eq!(message, b"DOTNET_IPC_V1\0\x1c\0\x02\x01\0\0\x07\0\0\0\0\0\0\0");
/// # Ok::<(), ipc_proto::EncodeError>(())
/// ```
pub fn encode_command<'b, C: Command>(command: &C, buf: &'b mut [u8]) -> Result<&'b mut [u8], EncodeError> {
    encode(C::CODE, command, buf)
}

/// The data that follows an OK answer on the same connection.
///
/// ```
/// use ipc_proto::types::{SessionConfig, UserEventsSession};
/// use ipc_proto::{Array, CollectTracing5, Continuation, Request, ResumeRuntime};
///
/// let session = SessionConfig::UserEvents(UserEventsSession { rundown_keyword: 0, providers: Array::EMPTY });
/// let request = Request::CollectTracing5(CollectTracing5 { session });
/// assert_eq!(request.continuation(), Continuation::UserEvents); // a descriptor precedes the answer
/// assert_eq!(Request::ResumeRuntime(ResumeRuntime {}).continuation(), Continuation::Nothing);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    /// Nothing: the runtime closes the connection.
    Nothing,
    /// The number of bytes that the answer announces; see [`ReceiveEnvironment`](crate::ReceiveEnvironment).
    Counted,
    /// A NetTrace stream, up to the end of the connection.
    Stream,
    /// No bytes, but the connection stays open during the session, and the client passes a file descriptor before the
    /// answer. An [`Exchange`](crate::Exchange) moves only bytes, so the driver of the exchange passes the descriptor:
    ///
    /// ```text
    /// client                                              runtime
    /// CollectTracing5, all of it                       →  Serve, to its end
    /// sendmsg: 1 byte of any value; SCM_RIGHTS with    →  recvmsg: 1 byte; the descriptor, to be closed with
    ///   one descriptor of user_events_data                  the session
    /// Call, on to its end                              ←  Reply: the id of the session, or a refusal
    /// (the connection stays open)                         (nothing is sent; the session ends with the connection)
    /// ```
    ///
    /// The `sendmsg` must be separate from the request: the runtime reads the request by plain reads, which lose a
    /// descriptor. The byte of the `sendmsg` is in no size field. A runtime that receives no descriptor answers
    /// [`BAD_ENCODING`](crate::HResult::BAD_ENCODING). A runtime that cannot register tracepoints answers
    /// [`FAIL`](crate::HResult::FAIL); so must a server whose driver cannot receive descriptors. Section
    /// "passing_file_descriptor" of the specification. `nettrace::user_events` reads the records of the tracepoints.
    UserEvents,
}

/// A row of the table of commands, for code that handles all commands alike.
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
}
