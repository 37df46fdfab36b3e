//! The public types are `Send`, `Sync` and `Unpin`. The compiler derives these traits from private fields, so that a
//! new field could remove one of them.
use core::error::Error;
use std::net::TcpStream;

use ipc_proto::plan::*;
use ipc_proto::port::*;
use ipc_proto::types::*;
use ipc_proto::wire::*;
use ipc_proto::*;

fn crosses_threads<T: Send + Sync + Unpin>() {}

/// An error can be returned from a thread, and stored as `Box<dyn Error + Send + Sync>`.
fn is_error<T: Error + Send + Sync + Unpin + 'static>() {}

#[test]
fn exchanges_cross_threads() {
    crosses_threads::<Call<'_, GetProcessInfo2>>();
    crosses_threads::<UntypedCall<'_>>();
    crosses_threads::<SuspendedCall<GetProcessInfo2>>();
    crosses_threads::<SuspendedCall<Untyped>>();
    crosses_threads::<Serve<'_>>();
    crosses_threads::<SuspendedServe>();
    crosses_threads::<Reply<'_>>();
    crosses_threads::<SuspendedReply>();
    crosses_threads::<ReceiveAdvertise>();
    crosses_threads::<ReceiveEnvironment<'_>>();
    crosses_threads::<SuspendedEnvironment>();
    crosses_threads::<SendEnvironment<'_, '_>>();
    crosses_threads::<Step<'_>>();
}

#[test]
fn machines_of_several_connections_cross_threads() {
    crosses_threads::<Session>();
    crosses_threads::<StopStep<'_>>();
    crosses_threads::<BusyBackoff>();
    crosses_threads::<Fallback<TraceStep<'_>>>();
    crosses_threads::<Fallback<DumpStep<'_>>>();
    crosses_threads::<Fallback<InfoStep>>();
    crosses_threads::<Fallback<Single<ResumeRuntime>>>();
    crosses_threads::<FallbackStep<'_>>();
    crosses_threads::<ConnectPort>();
    crosses_threads::<ConnectStep<'_>>();
    crosses_threads::<Backoff>();
    crosses_threads::<Suspension<[bool; 4]>>();
    crosses_threads::<MonitorPort<TcpStream, u32, [MonitorSlot<TcpStream, u32>; 4]>>();
    crosses_threads::<MonitorChange<TcpStream, u32>>();
    crosses_threads::<RuntimeEntry<u32>>();
}

#[test]
fn configurations_and_findings_cross_threads() {
    crosses_threads::<TraceConfig<'_>>();
    crosses_threads::<DumpConfig<'_>>();
    crosses_threads::<Runtime>();
    crosses_threads::<LostFeatures>();
    crosses_threads::<Explanation>();
    crosses_threads::<Hazard>();
    crosses_threads::<Config<'_>>();
    crosses_threads::<Finding<'_>>();
    crosses_threads::<PortList<'_>>();
    crosses_threads::<Port<'_>>();
    crosses_threads::<ToolPort<'_>>();
    crosses_threads::<MonitorLimits>();
    crosses_threads::<SocketName>();
    crosses_threads::<RouterSocketName>();
    crosses_threads::<PipeName>();
}

#[test]
fn messages_cross_threads() {
    crosses_threads::<Message<'_>>();
    crosses_threads::<Parsed<Message<'_>>>();
    crosses_threads::<Request<'_>>();
    crosses_threads::<Answer<'_, ProcessInfo3<'_>>>();
    crosses_threads::<ServerError<'_>>();
    crosses_threads::<Advertise>();
    crosses_threads::<CommandInfo>();
    crosses_threads::<Text<'_>>();
    crosses_threads::<Array<'_, Provider<'_>>>();
    crosses_threads::<Reader<'_>>();
    crosses_threads::<Writer<'_>>();
}

#[test]
fn errors_cross_threads() {
    is_error::<WireError>();
    is_error::<BufferTooSmall>();
    is_error::<ParseGuidError>();
    is_error::<DecodeError>();
    is_error::<EncodeError>();
    is_error::<ProtocolError>();
    is_error::<PollError<ProtocolError>>();
    is_error::<InvalidValue>();
    is_error::<Violation>();
    is_error::<RequestError<'static>>();
    is_error::<TracepointFormatError>();
    is_error::<ParseSocketNameError>();
    is_error::<ParsePipeNameError>();
    is_error::<NotTracing>();
    is_error::<FallbackError>();
    is_error::<PortAddressError>();
    is_error::<ToolPortError>();
    is_error::<MonitorFull<TcpStream, u32>>();
}
