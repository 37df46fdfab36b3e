//! The types of programs that were compiled ahead of time, whose names are in the symbols of the program.
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::graph::Graph;
use super::type_table::HeapType;
use crate::names::{ImagePlace, NativeImage, NativeSymbol, module_name, type_of_symbol};

impl Graph {
    /// Returns the programs whose symbols have the names of types without one.
    #[must_use]
    pub fn native_images(&self) -> Vec<NativeImage> {
        let mut images: BTreeMap<u64, NativeImage> = BTreeMap::new();
        for of_type in self.types.iter().filter(|of_type| is_nameless(of_type)) {
            let image = images.entry(of_type.module_id).or_insert_with(|| {
                let (path, build_id) = (of_type.module.as_deref().unwrap_or_default(), &of_type.build_id);
                ImagePlace { path, build_id, bias: of_type.module_id, is_relative: true }.image(0)
            });
            image.wanted.insert(of_type.name_id.into());
        }
        images.into_values().collect()
    }

    /// Names the types of a program by its symbols: the one of a method table begins where the method table does.
    ///
    /// A symbol becomes the name and the assembly of its type, as far as its form is known. Any other one is the name as
    /// it is.
    pub fn native_symbols(&mut self, image: &NativeImage, symbols: &[NativeSymbol]) {
        let names: BTreeMap<u64, &str> =
            symbols.iter().map(|symbol| (symbol.start, symbol.name.as_str())).collect();
        let program = module_name(&image.path);
        for of_type in self.types.iter_mut().filter(|of_type| is_nameless(of_type)) {
            let symbol = names.get(&of_type.name_id.into()).filter(|_| of_type.module_id == image.bias);
            let Some(symbol) = symbol else { continue };
            match type_of_symbol(symbol, program) {
                Some((assembly, name)) => {
                    (of_type.module, of_type.raw_name) = (Some(assembly.into()), Some(name))
                }
                None => of_type.raw_name = Some((*symbol).to_owned()),
            }
        }
    }
}

fn is_nameless(of_type: &HeapType) -> bool {
    of_type.is_native() && of_type.raw_name.as_deref().is_some_and(str::is_empty)
}
