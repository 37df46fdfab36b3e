//! The public types can be sent to another thread if the transport can. The compiler derives that from private fields,
//! so a new field could change it.
use ipc_async::{
    AsyncClient, AsyncConnection, AsyncConnector, AsyncMonitor, AsyncServer, AsyncTraceSession,
    AsyncTransport, PortConnector,
};

fn crosses_threads<T: Send + Sync + Unpin + 'static>() {}
fn is_sent<T: Send + Unpin + 'static>() {}

#[expect(dead_code, reason = "the compiler checks it for every connector")]
fn asynchronous_types_cross_threads<A>()
where
    A: AsyncConnector<Connecting: Send>
        + AsyncTransport<Stream: Send + Unpin, Sleep: Send>
        + Send
        + Sync
        + Unpin
        + 'static,
{
    crosses_threads::<AsyncClient<A>>();
    crosses_threads::<AsyncMonitor<A>>();
    crosses_threads::<AsyncClient<PortConnector<A>>>();
    is_sent::<AsyncConnection<A>>();
    is_sent::<AsyncServer<A>>();
    is_sent::<AsyncTraceSession<A>>();
    is_sent::<AsyncTraceSession<PortConnector<A>>>();
}

#[expect(dead_code, reason = "the compiler checks it for every connector")]
fn futures_can_be_spawned<A>(client: &'static AsyncClient<A>, monitor: &'static AsyncMonitor<A>)
where
    A: AsyncConnector<Connecting: Send> + AsyncTransport<Stream: Send, Sleep: Send> + Send + Sync + 'static,
{
    fn is_spawned(_: impl Future<Output: Send> + Send + 'static) {}
    is_spawned(client.process_info());
    is_spawned(client.environment());
    is_spawned(client.resume());
    is_spawned(monitor.next_event());
}
