//! The names of HRESULTs.
use ipc_proto::HResult;

use crate::text::Text;

/// Returns the name of an HRESULT as in the specification, for example `DS_IPC_E_UNKNOWN_COMMAND`; null for one without a
/// name.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_hresult_name(hresult: u32) -> Text<'static> {
    Text::optional(HResult(hresult).name())
}

/// Returns the meaning of an HRESULT for a user, in English; null for one without a name.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_hresult_hint(hresult: u32) -> Text<'static> {
    Text::optional(HResult(hresult).hint())
}
