//! Names of frames: methods, modules, mappings and symbols by address.
//!
//! # Where names come from
//!
//! | source | rows | names |
//! |---|---|---|
//! | `Microsoft-Windows-DotNETRuntime` | MethodLoadVerbose, MethodUnloadVerbose | code that was compiled or freed during the session, dynamic methods too |
//! | `Microsoft-Windows-DotNETRuntimeRundown` | MethodDCStartVerbose, MethodDCEndVerbose | all code that exists when the session starts or ends; the only source for precompiled methods |
//! | both | ModuleLoad, ModuleDCStart, ModuleDCEnd | the modules of these methods |
//! | `Universal.System` (V6) | ProcessMapping, ProcessSymbol, ProcessMappingMetadata | mapped files and symbols of each process |
//! | symbols of native code | | see [`Names::native_images`]: the caller reads the files |
//! | a perf map | lines `START SIZE name` | see [`Names::perf_map_line`] |
//!
//! # What a name looks like
//!
//! A name has the form in which TraceEvent prints it: `module!Namespace.Type.Method(argument,types)`. The module is the
//! name of its file without directory, `.dll` and `.exe`, in the case of the trace; TraceEvent prints some modules in
//! lower case. A method whose module has no row is `ManagedModule!Type.Method()`, an address in a mapped file without a
//! symbol is `module!?`, and any other address is `?!?`. [`Names::place`] returns module and offset of an address in a
//! mapped file.
//!
//! Memory that holds compiled code is not a file (`/memfd:doublemapper` of V6). Its symbols have the form `return-type
//! [module] Type::Method(args)[Tier]` and are `module!Type::Method(args)`; other symbols in this memory, such as stubs,
//! are `unknown!name`.
//!
//! # Addresses that are used again
//!
//! Code can be freed, and its address used for other code. An address therefore has an [`AddressId`] for each owner:
//! when its code is unloaded or replaced, [`Names`] binds the id to the old name, and the next
//! [`address`](Names::address) call returns a new id. This needs events in the order of time; a trace without unloads
//! can have any order, because an address that is not bound gets the name of the code that covers it at the end.
//!
//! # Memory
//!
//! The names of all methods are in one arena and have at most [`Names::LIMIT`] bytes. The names of a row become text when
//! a sample is in the method; until then they stay as they are, unless the arena is large or the row is long. The name of
//! a method is removed when its code is freed, if no stack has an address in the code. Removed names are still in the
//! arena until it is compacted, so it can be twice as large. The name of a module has at most 255 bytes, the name of a
//! method or a label at most 4,096. Longer names are cut. Methods, modules and mappings are at most [`Names::ROWS`] each.
//! Further rows are ignored, and [`dropped`](Names::dropped) counts them. Addresses and frames are stored until
//! [`forget_addresses`](Names::forget_addresses).
mod code_map;
mod frames;
mod modules;
mod names;
mod native_image;
mod native_symbols;
mod own_code;
mod rows;
mod spelling;

pub use self::frames::{AddressId, FrameId};
pub(crate) use self::frames::{Known, at, at_mut};
pub use self::names::Names;
pub(crate) use self::names::process_of;
pub(crate) use self::native_image::ImagePlace;
pub use self::native_image::{NativeImage, NativeSymbol};
pub(crate) use self::native_symbols::type_of_symbol;
pub use self::own_code::OwnCode;
pub(crate) use self::rows::{MethodNames, MethodRow, ModuleRow, ThreadRow};
pub(crate) use self::spelling::{cut, file_name, method_name, module_name};
pub use self::spelling::{short_name, source_name};
