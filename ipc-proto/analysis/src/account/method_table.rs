//! The methods of the program, each once.
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use ipc_proto::wire::to_u32;

use crate::names::{FrameId, Names, at, short_name, source_name};

/// The number of a method of the program in an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodNumber(u32);

/// The methods of the program: all instances of a generic method are one.
#[derive(Debug, Default)]
pub(super) struct OwnMethods {
    names: Vec<String>,
    numbers: BTreeMap<String, MethodNumber>,
    frames: BTreeMap<FrameId, Option<MethodNumber>>,
}

impl OwnMethods {
    /// Returns the method of a frame; `None` if it is not one of the program.
    pub(super) fn of(&mut self, frame: FrameId, names: &Names) -> Option<MethodNumber> {
        if let Some(known) = self.frames.get(&frame) {
            return *known;
        }
        let number = names.is_own(frame).then(|| self.number(names.short(frame)));
        self.frames.insert(frame, number);
        number
    }

    fn number(&mut self, name: &str) -> MethodNumber {
        let name = source_name(&without_type_arguments(name));
        if let Some(known) = self.numbers.get(&name) {
            return *known;
        }
        let number = MethodNumber(to_u32(self.names.len()));
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    pub(super) fn name(&self, method: MethodNumber) -> &str {
        at(&self.names, method.0).map_or("?", String::as_str)
    }
}

/// Returns a short name without what is in square brackets. An array type has empty ones.
fn without_type_arguments(name: &str) -> String {
    let mut depth = 0_u32;
    let keeps = |char: &char| {
        match char {
            '[' => depth = depth.saturating_add(1),
            ']' => {
                let was_inside = depth > 0;
                depth = depth.saturating_sub(1);
                return !was_inside;
            }
            _ => {}
        }
        depth == 0
    };
    let rest: String = name.chars().filter(keeps).collect();
    if short_name(&rest).is_empty() { name.into() } else { rest }
}

#[cfg(test)]
mod tests {
    use super::without_type_arguments;

    #[test]
    fn generic_methods() {
        for (name, expected) in [
            ("Shop.Repo`1[Shop.OrderId].Get", "Shop.Repo`1.Get"),
            ("Shop.Repo`1[Shop.Key`1[System.Int32]].Get", "Shop.Repo`1.Get"),
            ("Shop.Repo.Get[System.__Canon]", "Shop.Repo.Get"),
            ("Shop.Repo.op_Implicit", "Shop.Repo.op_Implicit"),
            ("Shop.]Odd", "Shop.]Odd"),
            ("[all]", "[all]"),
        ] {
            assert_eq!(without_type_arguments(name), expected);
        }
    }
}
