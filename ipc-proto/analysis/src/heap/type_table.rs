//! The types that a session described, by the runtime's id.
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ipc_proto::wire::{to_u32, to_usize};

use super::rows::TypeElement;
use crate::event::owned;

/// A type of objects on the heap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HeapType {
    /// The runtime's id of the type: the address of its method table.
    pub id: u64,
    /// The name as the runtime spells it, for example ``System.Collections.Generic.List`1[System.String]``. `None` if
    /// no event described the type, empty if the runtime has no names (NativeAOT).
    pub raw_name: Option<String>,
    /// The id of the module; the base address of the program if [`is_native`](Self::is_native).
    pub module_id: u64,
    /// The path of the module; `None` if no event named it.
    pub module: Option<Arc<str>>,
    /// The token of the type in its module; the offset of its method table from the base address of the program if
    /// [`is_native`](Self::is_native).
    pub name_id: u32,
    /// The flags as they were sent: 1 delegate, 2 finalizable, 4 of COM, 8 array, 0x10 of a native program.
    pub flags: u32,
}

impl HeapType {
    /// Returns whether the type belongs to a native program, so that only its symbols have the name.
    #[must_use]
    pub const fn is_native(&self) -> bool {
        self.flags & 0x10 != 0
    }

    /// Returns the name of the type as [`dotnet_name`] spells it; of a type without a name, what identifies it.
    ///
    /// ```
    /// use nettrace_analysis::heap::HeapType;
    ///
    /// assert_eq!(HeapType::default().name(), "Type(0x0)");
    /// ```
    #[must_use]
    pub fn name(&self) -> String {
        let name = match self.raw_name.as_deref() {
            None => format!("Type(0x{:x})", self.id),
            Some("") if self.flags & 8 != 0 => format!("ArrayType(0x{:x})", self.name_id),
            Some("") => format!("Type(0x{:x})", self.name_id),
            Some(raw) => dotnet_name(raw),
        };
        if self.flags & 4 != 0 { format!("[RCW {name}]") } else { name }
    }
}

/// Returns the name of a type as people write it: without the number of type parameters, which are in `<>`.
///
/// Arrays keep `[]`. Keywords of languages are not used.
///
/// ```
/// use nettrace_analysis::heap::dotnet_name;
///
/// assert_eq!(dotnet_name("System.Collections.Generic.List`1[Shop.Item]"), "System.Collections.Generic.List<Shop.Item>");
/// assert_eq!(dotnet_name("System.Int32[]"), "System.Int32[]");
/// ```
#[must_use]
pub fn dotnet_name(raw: &str) -> String {
    let mut name = String::with_capacity(raw.len());
    let mut rest = raw.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '`' => while rest.next_if(char::is_ascii_digit).is_some() {},
            '[' if rest.next_if_eq(&']').is_some() => name.push_str("[]"),
            '[' => name.push('<'),
            ']' => name.push('>'),
            other => name.push(other),
        }
    }
    name
}

/// A type whose texts no snapshot has yet.
#[derive(Debug, Clone, Default)]
pub(super) struct TypeTable {
    types: Vec<HeapType>,
    places: BTreeMap<u64, u32>,
    /// The places of types that were asked for last, by a part of their id.
    recent: Vec<Option<(u64, u32)>>,
}

impl TypeTable {
    /// Returns the place of a type. A later event can describe it.
    #[inline]
    pub(super) fn place(&mut self, id: u64) -> u32 {
        // The ids of types are addresses: their low bits are equal, the next ones differ.
        let slot = usize::from((id >> 3 ^ id >> 11).to_le_bytes()[0]);
        match self.recent.get(slot) {
            Some(Some((known, place))) if *known == id => return *place,
            Some(_) => {}
            None => self.recent.resize(1 << u8::BITS, None),
        }
        let next = to_u32(self.types.len());
        let place = *self.places.entry(id).or_insert(next);
        if place == next {
            self.types.push(HeapType { id, ..HeapType::default() });
        }
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = Some((id, place));
        }
        place
    }

    pub(super) fn describe(&mut self, element: &TypeElement<'_>) {
        let place = self.place(element.id);
        if let Some(known) = self.types.get_mut(to_usize(place)) {
            known.raw_name = Some(owned(element.name));
            (known.module_id, known.name_id, known.flags) = (element.module, element.name_id, element.flags);
        }
    }

    /// Returns the types, each with the path of its module.
    pub(super) fn with_modules(&self, modules: &BTreeMap<u64, Arc<str>>) -> Vec<HeapType> {
        let with_module =
            |of: &HeapType| HeapType { module: modules.get(&of.module_id).cloned(), ..of.clone() };
        self.types.iter().map(with_module).collect()
    }
}
