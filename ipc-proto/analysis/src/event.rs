//! The parts of an event that the analyses read: its kind, its fields and the texts of its rows.
mod event_fields;
mod event_kinds;
mod known_provider;
mod named_number;
mod runtime_event;

pub(crate) use self::event_fields::{
    is_named, number, owned, pointer_size, push_text, row_pointer, row_text, split_once, text,
};
pub(crate) use self::event_kinds::{EventKind, EventKinds};
pub use self::known_provider::KnownProvider;
pub(crate) use self::known_provider::is_name;
pub(crate) use self::named_number::{name_list, named_number};
pub use self::runtime_event::RuntimeEvent;
