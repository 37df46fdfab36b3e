//! [`Hazard`]: a request that can end the target process.
use super::runtime::{Flavour, Runtime, obstacle};
use crate::sentences::sentences;
use crate::{GenerateCoreDump, GenerateCoreDump2, GenerateCoreDump3, Request};

sentences! {
    /// A request that can end the target process. Its `Display` is a sentence that warns the user before the request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Hazard {
        /// EnablePerfMap while the runtime is suspended at startup.
        PerfMapWhileSuspended = "EnablePerfMap ends a .NET 8 or 9 that is suspended at startup; resume it first",
        /// SetEnvironmentVariable without a value.
        UnsetVariable = "removing a variable ends a program compiled by NativeAOT",
        /// A startup hook whose file is missing or may be missing, or that cannot be loaded.
        StartupHook = "a startup hook that cannot be loaded ends a running .NET 9 or 10, and a suspended runtime \
            of any version when it is resumed",
        /// A dump whose name is null.
        DumpWithoutName = "a dump whose name is null ends every CoreCLR; an empty one does not",
    }
}

/// Returns how the request can end the process.
///
/// `file_exists` is for a startup hook: whether its file exists in the target's file system; `None` if unknown.
///
/// ```
/// use ipc_proto::{Request, SetEnvironmentVariable, Text, plan::{self, Flavour, Hazard, Runtime}};
///
/// let unset = SetEnvironmentVariable { name: "A".into(), value: Text::NULL };
/// let unset = Request::SetEnvironmentVariable(unset);
/// assert_eq!(plan::hazard(&unset, &Runtime::default(), None), Some(Hazard::UnsetVariable));
/// let usual = Runtime { flavour: Some(Flavour::CoreClr), ..Runtime::default() };
/// assert_eq!(plan::hazard(&unset, &usual, None), None);
/// ```
#[must_use]
pub fn hazard(request: &Request<'_>, runtime: &Runtime, file_exists: Option<bool>) -> Option<Hazard> {
    let Runtime { version, flavour, suspended, .. } = *runtime;
    if obstacle(request.code(), runtime).is_some() {
        return None;
    }
    let coreclr = matches!(flavour, None | Some(Flavour::CoreClr));
    match request {
        Request::GenerateCoreDump(GenerateCoreDump { dump_name, .. })
        | Request::GenerateCoreDump2(GenerateCoreDump2 { dump_name, .. })
        | Request::GenerateCoreDump3(GenerateCoreDump3 { dump_name, .. }) => {
            (coreclr && dump_name.is_null()).then_some(Hazard::DumpWithoutName)
        }
        Request::EnablePerfMap(_) => {
            let kills = coreclr && suspended != Some(false) && matches!(version, None | Some(8 | 9));
            kills.then_some(Hazard::PerfMapWhileSuspended)
        }
        Request::SetEnvironmentVariable(set) => {
            let kills = matches!(flavour, None | Some(Flavour::NativeAot)) && set.value.is_null();
            kills.then_some(Hazard::UnsetVariable)
        }
        Request::ApplyStartupHook(_) => {
            let running_8 = version == Some(8) && suspended == Some(false);
            let kills = coreclr && file_exists != Some(true) && !running_8;
            kills.then_some(Hazard::StartupHook)
        }
        _ => None,
    }
}
