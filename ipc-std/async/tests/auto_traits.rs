//! The public types can be sent to another thread, and moved after they were pinned. The compiler derives that from
//! private fields, so a new field could change it.
use ipc_async::{AsyncClient, AsyncConnector, AsyncTraceSession};

fn crosses_threads<T: Send + Sync + Unpin + 'static>() {}

/// Fails to compile if a type is `Sync`: then two implementations of the trait could be meant.
macro_rules! is_not_sync {
    ($type:ty) => {{
        trait OneIfNotSync<Which> {
            fn check() {}
        }
        impl<T> OneIfNotSync<()> for T {}
        impl<T: Sync> OneIfNotSync<u8> for T {}
        <$type as OneIfNotSync<_>>::check();
    }};
}

#[expect(dead_code, reason = "the compiler checks it for every connector")]
fn asynchronous_clients_cross_threads<A: AsyncConnector<Stream: Unpin>>() {
    fn is_sent<T: Send + Unpin + 'static>() {}
    crosses_threads::<AsyncClient<A>>();
    is_sent::<AsyncTraceSession<A>>();
    // The session stores a future of the connector, which only one task polls. So the session is not shared.
    is_not_sync!(AsyncTraceSession<A>);
}
