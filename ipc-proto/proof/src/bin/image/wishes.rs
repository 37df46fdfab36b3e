//! The wishes, a trace and a dump, and the runtime that the parts `plan` and `fallback` make plans for.
use ipc_proto::plan::{DumpConfig, Flavour, Providers, Runtime, TraceConfig};
use ipc_proto::types::{Provider, StreamingProvider};

use crate::register::{number, storage};
use crate::values::Input;

pub fn runtime() -> Runtime {
    let version = u8::try_from(number()).ok();
    let flavour = (number() > 0).then_some(Flavour::NativeAot);
    Runtime { version, flavour, ..Runtime::default() }
}

pub fn trace() -> TraceConfig<'static> {
    let providers = match number() {
        0 => Providers::from(&*storage::<Provider<'_>>()),
        _ => Providers::from(&*storage::<StreamingProvider<'_>>()),
    };
    TraceConfig {
        buffer_mb: number(),
        rundown_keyword: number().into(),
        stackwalk: number() > 0,
        buffer_mode: Input::input(),
        ..TraceConfig::new(providers)
    }
}

pub fn dump() -> DumpConfig<'static> {
    DumpConfig { path: Input::input(), dump_type: Input::input(), flags: Input::input() }
}
