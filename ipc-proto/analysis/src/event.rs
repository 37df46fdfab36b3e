//! The parts of an event that the analyses read: its kind, its fields and the texts of its rows.
mod event_fields;
mod event_kinds;
mod named_number;
mod runtime_event;

pub(crate) use self::event_fields::{
    is_named, number, owned, pointer_size, push_text, row_pointer, row_text, split_once, text,
};
pub(crate) use self::event_kinds::{EventKind, EventKinds};
pub(crate) use self::named_number::{name_list, named_number};
pub(crate) use self::runtime_event::is_name;
pub use self::runtime_event::{KnownProvider, RuntimeEvent};
