//! The monitor: it listens, and each WebSocket that the runtime opens carries one command.
use core::error::Error;
use core::time::Duration;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use ipc_proto::types::{EventLevel, Format, Provider, SessionId};
use ipc_proto::{Advertise, Array, CollectTracing2, ReceiveAdvertise, StopTracing};
use ipc_std::{Connection, TraceReader};
use nettrace::End;

use crate::socket::{PATH, Socket};

/// The limit of a command. The runtime answers only when managed code returns to the event loop of the page.
const CALL: Duration = Duration::from_secs(30);

/// A monitor of one runtime. The example `tcp` of `ipc-proto` distinguishes several runtimes by their cookies.
#[derive(Debug)]
pub(crate) struct Monitor {
    connections: Receiver<(Advertise, Socket)>,
    url: String,
}

impl Monitor {
    pub(crate) fn bind(address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let url = format!("ws://{}{PATH}", listener.local_addr()?);
        let (sender, connections) = channel();
        thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                match accept(tcp) {
                    Ok(accepted) => {
                        if sender.send(accepted).is_err() {
                            break; // the monitor was dropped
                        }
                    }
                    Err(e) => eprintln!("monitor: a peer is no runtime: {e}"),
                }
            }
        });
        Ok(Self { connections, url })
    }

    /// The value of `DOTNET_DiagnosticPorts`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the next connection that the runtime makes, or has made.
    pub(crate) fn connection(&self) -> Result<Connection<Socket>, Box<dyn Error>> {
        let (_, mut socket) = self.connections.recv_timeout(CALL)?;
        socket.set_limit(Some(CALL));
        Ok(Connection::new(socket))
    }

    /// Traces for `length`, and returns the number of events. The stream keeps its connection; the runtime opens
    /// another connection for the Stop.
    pub(crate) fn trace(&self, providers: [&str; 2], length: Duration) -> Result<u64, Box<dyn Error>> {
        let providers = providers.map(|name| Provider {
            keywords: u64::MAX,
            level: EventLevel::INFORMATIONAL,
            name: name.into(),
            arguments: "".into(),
        });
        let start = CollectTracing2 {
            buffer_mb: 256,
            format: Format::NET_TRACE,
            rundown: true,
            providers: Array::from(&providers),
        };
        let mut connection = self.connection()?;
        let SessionId { session_id } = connection.call(&start)?;
        let mut socket = connection.into_stream();
        socket.set_limit(Some(length + 2 * CALL));
        // The runtime ends the stream, and then answers the Stop, only if the stream is read at the same time.
        let events = thread::spawn(move || {
            let (mut reader, mut events) = (TraceReader::new(socket), 0);
            while reader.next_event()?.is_some() {
                events += 1;
            }
            match reader.summary().end {
                Some(End::Complete) => Ok(events),
                end => Err(io::Error::other(format!("the stream ends with {end:?}"))),
            }
        });
        thread::sleep(length);
        self.connection()?.call(&StopTracing { session_id })?;
        Ok(events.join().map_err(|_| "reading the stream panicked")??)
    }
}

/// Accepts a connection, and receives its frame in the time that `dotnet-dsrouter` allows for both.
fn accept(tcp: TcpStream) -> Result<(Advertise, Socket), Box<dyn Error>> {
    let mut socket = Socket::accept(tcp, Duration::from_millis(ReceiveAdvertise::DEADLINE_MS.into()))?;
    let mut receive = ReceiveAdvertise::new();
    ipc_std::drive(&mut receive, &mut socket)?;
    Ok((receive.finish()?, socket))
}
