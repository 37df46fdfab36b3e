//! The public types can be sent to another thread, shared with it, and moved after they were pinned. The compiler
//! derives that from private fields, so a new field could change it.
use core::error::Error;
use std::fs::File;

#[cfg(unix)]
use ipc_std::discover::Stale;
use ipc_std::discover::{Denied, Found, Scan, Search, SearchError};
use ipc_std::{
    AdvertisedRuntime, Client, Connection, Connector, Credentials, DriveError, DumpOutcome, Environment,
    Incoming, Inlet, Monitor, MonitorEvent, MonitorWaker, Observer, ProcessInfo, Server, ServerStopper,
    Stopper, Stream, Timeouts, TraceReader, TraceSession, Turn,
};

fn crosses_threads<T: Send + Sync + Unpin + 'static>() {}

/// An error can be returned from a thread, and stored as `Box<dyn Error + Send + Sync>`.
fn is_error<T: Error + Send + Sync + Unpin + 'static>() {}

#[test]
fn clients_cross_threads() {
    crosses_threads::<Client>();
    crosses_threads::<Connection<Stream>>();
    crosses_threads::<Stream>();
    crosses_threads::<Box<dyn Connector>>();
    crosses_threads::<Environment>();
    crosses_threads::<TraceSession>();
    crosses_threads::<Stopper>();
    crosses_threads::<Observer>();
    crosses_threads::<Timeouts>();
    crosses_threads::<ProcessInfo>();
    crosses_threads::<DumpOutcome>();
}

#[test]
fn owners_of_ports_cross_threads() {
    crosses_threads::<Monitor>();
    crosses_threads::<MonitorWaker>();
    crosses_threads::<MonitorEvent>();
    crosses_threads::<AdvertisedRuntime>();
    crosses_threads::<Server>();
    crosses_threads::<ServerStopper>();
    crosses_threads::<Incoming>();
    crosses_threads::<Inlet>();
    crosses_threads::<Turn>();
}

#[test]
fn readers_cross_threads() {
    crosses_threads::<TraceReader<File>>();
    crosses_threads::<TraceReader<TraceSession>>();
    #[cfg(unix)]
    crosses_threads::<ipc_std::UserEvents>();
    #[cfg(feature = "counters")]
    crosses_threads::<ipc_std::CounterStream>();
}

#[test]
fn discovery_crosses_threads() {
    crosses_threads::<Search>();
    crosses_threads::<Scan>();
    crosses_threads::<Found>();
    crosses_threads::<Denied>();
    #[cfg(unix)]
    crosses_threads::<Stale>();
    crosses_threads::<Credentials>();
}

#[test]
fn errors_cross_threads() {
    is_error::<ipc_std::Error>();
    is_error::<DriveError>();
    is_error::<SearchError>();
}
