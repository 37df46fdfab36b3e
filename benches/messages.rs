//! The operations of the benches on messages and conversations.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, reason = "a benchmark")]

use ipc_proto::types::{EventLevel, Format, ProcessInfo3, Provider};
use ipc_proto::{
    Answer, Array, Call, CollectTracing2, Exchange, GetProcessInfo3, Guid, Message, Parsed, Request, Serve,
    Session, SessionEnd, Step, StopEvent, StopStep, Text,
};

/// The providers of a rather large session.
pub const PROVIDERS: [&str; 8] = [
    "Microsoft-Windows-DotNETRuntime",
    "Microsoft-Windows-DotNETRuntimePrivate",
    "Microsoft-DotNETCore-SampleProfiler",
    "Microsoft-Diagnostics-DiagnosticSource",
    "Microsoft-Extensions-Logging",
    "Microsoft.AspNetCore.Hosting",
    "System.Net.Http",
    "System.Runtime",
];

/// Returns eight providers, some with arguments.
#[must_use]
pub fn providers() -> [Provider<'static>; 8] {
    PROVIDERS.map(|name| Provider {
        keywords: 0x14_c14f_ccbd,
        level: EventLevel::VERBOSE,
        name: Text::from(name),
        arguments: Text::from(if name.starts_with("System.") { "EventCounterIntervalSec=1" } else { "" }),
    })
}

/// Returns the request that starts a session with these providers.
#[must_use]
pub fn collect_tracing<'a>(providers: &'a [Provider<'a>]) -> CollectTracing2<'a> {
    CollectTracing2 {
        buffer_mb: 256,
        format: Format::NET_TRACE,
        rundown: true,
        providers: Array::from(providers),
    }
}

/// Returns the information that a process on Linux reports.
#[must_use]
pub fn process_info() -> ProcessInfo3<'static> {
    ProcessInfo3 {
        version: 1,
        process_id: 7217,
        runtime_cookie: Guid(*b"a random cookie "),
        command_line: Text::from("/usr/share/dotnet/dotnet /srv/shop/Shop.Web.dll --urls http://*:5000"),
        os: Text::from("Linux"),
        arch: Text::from("x64"),
        managed_entrypoint_assembly_name: Text::from("Shop.Web"),
        clr_product_version: Text::from("10.0.12"),
        portable_rid: Text::from("linux-x64"),
    }
}

/// Returns the message in these bytes.
#[must_use]
pub fn whole(bytes: &[u8]) -> Message<'_> {
    let Parsed::Complete { value, .. } = Message::parse(bytes).unwrap() else { unreachable!() };
    value
}

/// Moves bytes from the exchange that sends to the exchange that receives.
fn carry(from: &mut impl Exchange, to: &mut impl Exchange) {
    while let (Step::Send(bytes), Step::Receive(space)) = (from.step(), to.step()) {
        let n = bytes.len().min(space.len());
        space.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        from.advance(n).unwrap();
        to.advance(n).unwrap();
    }
}

/// Sends a request from a `Call` to a `Serve` and the answer back; returns the process id in the answer.
pub fn exchange(buffers: &mut [[u8; 4096]; 3], info: &ProcessInfo3<'_>) -> u64 {
    let [tool, receive, send] = buffers;
    let mut call = Call::new(&GetProcessInfo3 {}, tool).unwrap();
    let mut serve = Serve::new(receive, send).unwrap();
    carry(&mut call, &mut serve);
    let (Ok(Request::GetProcessInfo3(asked)), mut reply) = serve.finish() else { unreachable!() };
    reply.answer(&asked, info).unwrap();
    carry(&mut reply, &mut call);
    let Answer::Ok(info) = call.finish().unwrap() else { unreachable!() };
    info.process_id
}

/// A session whose stream comes in pieces, and that is stopped before the last of them.
#[must_use]
pub fn session(pieces: &[&[u8]]) -> SessionEnd {
    const ANSWER: &[u8; 28] = b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x07\0\0\0\0\0\0\0";
    let mut session = Session::new(7);
    let (last, pieces) = pieces.split_last().unwrap();
    pieces.iter().for_each(|piece| session.stream_advance(piece));
    session.stop(1);
    let mut answer = &ANSWER[..];
    loop {
        let event = match session.stop_step() {
            StopStep::Connect => StopEvent::Connected,
            StopStep::Send(bytes) => StopEvent::Sent(bytes.len()),
            StopStep::Receive(space) => {
                let (now, later) = answer.split_at(space.len());
                space.copy_from_slice(now);
                answer = later;
                StopEvent::Received(now.len())
            }
            StopStep::Nothing => break,
        };
        session.stop_advance(event);
    }
    session.stream_advance(last);
    session.stream_advance(&[]);
    session.end().unwrap()
}
