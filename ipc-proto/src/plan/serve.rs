//! [`Serve::finish_for`]: a server refuses the commands that its version, its kind and its system do not have.
use super::runtime::{Obstacle, Runtime, obstacle, reads_payload_first, refusal};
use crate::{HResult, Reply, Request, RequestError, Serve};

impl<'b> Serve<'b> {
    /// Returns the request and the reply to it, as [`finish`](Self::finish) does. `runtime` is the version, the kind
    /// and the system of the server. The reply refuses a command that such a runtime does not have, with the same code
    /// as a .NET runtime, whether the payload is well-formed or not:
    ///
    /// | a command | the reply | a client then |
    /// |---|---|---|
    /// | that is newer than the server, or unknown | [`UNKNOWN_COMMAND`](HResult::UNKNOWN_COMMAND) | sends the older command, if there is one |
    /// | that the server's kind or system does not have: see [`obstacle`] | [`NOT_SUPPORTED`](HResult::NOT_SUPPORTED) | reports the refusal |
    /// | AttachProfiler, while the server [is suspended](Runtime::suspended) | [`NOT_YET_AVAILABLE`](HResult::NOT_YET_AVAILABLE) | reports the refusal |
    /// | that breaks a rule, or is malformed | the refusal of `finish` | reports the refusal |
    ///
    /// The server itself must refuse other commands that it leaves out: with `NOT_SUPPORTED`, after which a client
    /// sends no older command; or with `UNKNOWN_COMMAND` if it has the older command. For a server without dumps,
    /// profilers, perf maps and startup hooks, [`Flavour::Mono`](super::Flavour::Mono) refuses all of these commands.
    ///
    /// `Runtime::from` makes a [`Runtime`] of the server's [`ProcessInfo3`](crate::types::ProcessInfo3).
    ///
    /// # Errors
    /// [`RequestError::Refused`] for a command that the server does not have; else the errors of `finish`.
    ///
    /// ```
    /// use ipc_proto::plan::Runtime;
    /// use ipc_proto::{Exchange, HResult, RequestError, Serve};
    ///
    /// let (mut receive, mut send) = ([0; 64], [0; 64]);
    /// let mut serve = Serve::new(&mut receive, &mut send)?;
    /// serve.supply(b"DOTNET_IPC_V1\0\x14\0\x04\x08\0\0"); // GetProcessInfo3
    /// let net_7 = Runtime { version: Some(7), ..Runtime::default() };
    /// let (request, reply) = serve.finish_for(&net_7);
    /// assert_eq!(request, Err(RequestError::Refused(HResult::UNKNOWN_COMMAND)));
    /// assert_eq!(reply.bytes()[20..24], HResult::UNKNOWN_COMMAND.0.to_le_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish_for(self, runtime: &Runtime) -> (Result<Request<'b>, RequestError<'b>>, Reply<'b>) {
        let code = self.code();
        let mut refused = code.and_then(|code| refusal(code, runtime));
        let (request, mut reply) = self.finish();
        // A runtime that decodes the payload before it refuses the command does not check the values.
        let is_refused_later = |code| {
            reads_payload_first(code, runtime)
                && matches!(obstacle(code, runtime), Some(Obstacle::Flavour(_)))
        };
        if code.is_some_and(is_refused_later) && !matches!(request, Err(RequestError::Decode(_))) {
            refused = Some(HResult::NOT_SUPPORTED);
        }
        let Some(hresult) = refused else { return (request, reply) };
        // `refuse` cannot fail: nothing has been sent, and a refusal replaces a refusal.
        let _ = reply.refuse(hresult);
        (Err(RequestError::Refused(hresult)), reply)
    }
}
