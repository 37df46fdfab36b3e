//! Text that lines of events repeat, descriptions and stacks: it is formatted once, and then copied.
use nettrace::{Metadata, Str};

use crate::output::printable::start;

/// The texts of the descriptions that were formatted last.
#[derive(Debug)]
pub(crate) struct DescriptionTexts {
    /// The place of a description is its id modulo the number of places.
    places: Vec<Option<DescriptionText>>,
}

#[derive(Debug)]
struct DescriptionText {
    provider: Name,
    name: Name,
    /// The other parts of a description that are in its text.
    numbers: EventNumbers,
    text: Vec<u8>,
    is_cut: bool,
}

/// The start of a name. A text contains no more of a name.
#[derive(Debug)]
struct Name {
    is_utf16: bool,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EventNumbers {
    event_id: u32,
    version: u32,
    level: u32,
    opcode: Option<u8>,
    keywords: u64,
}

impl DescriptionTexts {
    /// The number of places. Names of the greatest length take 5 KiB in each.
    const PLACES: usize = 256;

    pub(crate) fn new() -> Self {
        Self { places: core::iter::repeat_with(|| None).take(Self::PLACES).collect() }
    }

    /// Returns the text of a description, and whether a part of the description is not in it.
    pub(crate) fn get(&self, metadata: &Metadata<'_>) -> Option<(&[u8], bool)> {
        let text = self.places.get(place(metadata.id, Self::PLACES))?.as_ref()?;
        let is_same = text.numbers == EventNumbers::of(metadata)
            && text.name.is(metadata.name)
            && text.provider.is(metadata.provider);
        is_same.then_some((&text.text, text.is_cut))
    }

    /// Stores the text of a description. A description that had the same place before loses its text.
    pub(crate) fn insert(&mut self, metadata: &Metadata<'_>, text: &[u8], is_cut: bool) {
        let Some(place) = self.places.get_mut(place(metadata.id, Self::PLACES)) else { return };
        *place = Some(DescriptionText {
            provider: Name::of(metadata.provider),
            name: Name::of(metadata.name),
            numbers: EventNumbers::of(metadata),
            text: text.to_vec(),
            is_cut,
        });
    }
}

impl EventNumbers {
    const fn of(metadata: &Metadata<'_>) -> Self {
        let Metadata { event_id, version, level, opcode, keywords, .. } = *metadata;
        Self { event_id, version, level, opcode, keywords }
    }
}

impl Name {
    fn of(name: Str<'_>) -> Self {
        let (is_utf16, bytes) = parts(name);
        Self { is_utf16, bytes: bytes.to_vec() }
    }

    fn is(&self, name: Str<'_>) -> bool {
        parts(name) == (self.is_utf16, &self.bytes)
    }
}

/// Returns the start of a name: whether it is UTF-16, and its bytes.
fn parts(name: Str<'_>) -> (bool, &[u8]) {
    match start(name) {
        Str::Utf8(bytes) => (false, bytes),
        Str::Utf16(bytes) => (true, bytes),
    }
}

/// The texts of the stacks that were formatted last.
#[derive(Debug)]
pub(crate) struct StackTexts {
    /// The place of a stack is its id modulo the number of places.
    places: Vec<StackText>,
}

#[derive(Debug, Clone, Default)]
struct StackText {
    addresses: Vec<u64>,
    text: Vec<u8>,
}

impl StackTexts {
    /// The number of places. With this many, traces of runtimes have hardly more misses than stacks. A stack of 256
    /// addresses takes 8 KiB in its place.
    const PLACES: usize = 256;

    pub(crate) fn new() -> Self {
        Self { places: vec![StackText::default(); Self::PLACES] }
    }

    /// Returns the text of the stack with this id. `format` formats its addresses, unless that was done before.
    ///
    /// An id means another stack after each sequence point, so the addresses are compared too.
    pub(crate) fn get<I: Iterator<Item = u64>>(
        &mut self,
        id: u32,
        stack: impl Fn() -> I,
        format: impl FnOnce(&[u64], &mut Vec<u8>),
    ) -> &[u8] {
        let Some(StackText { addresses, text }) = self.places.get_mut(place(id, Self::PLACES)) else {
            return &[];
        };
        if !stack().eq(addresses.iter().copied()) {
            addresses.clear();
            addresses.extend(stack());
            text.clear();
            format(addresses, text);
        }
        text
    }
}

/// Returns the place of an id. Ids count from 1.
fn place(id: u32, places: usize) -> usize {
    usize::try_from(id).unwrap_or_default().checked_rem(places).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_formatted_again_if_its_id_has_other_addresses() {
        let mut texts = StackTexts::new();
        let other_id = u32::try_from(StackTexts::PLACES).unwrap() + 1;
        let mut formatted = 0;
        for (id, addresses, is_new) in [
            (1, &[1, 2][..], true),
            (1, &[1, 2], false),
            (2, &[1, 2], true),
            (1, &[1, 2, 3], true),
            (1, &[1, 2], true),
            (other_id, &[3], true),
            (1, &[1, 2], true),
            (1, &[], true),
        ] {
            let before = formatted;
            let text = texts.get(
                id,
                || addresses.iter().copied(),
                |addresses, text| {
                    formatted += 1;
                    text.extend(format!("{addresses:?}").bytes());
                },
            );
            assert_eq!(text, format!("{addresses:?}").as_bytes());
            assert_eq!(formatted > before, is_new, "{id} {addresses:?}");
        }
    }

    #[test]
    fn a_description_is_found_by_all_that_is_in_its_text() {
        fn described(change: impl FnOnce(&mut Metadata<'static>)) -> Metadata<'static> {
            let mut metadata = Metadata::default();
            (metadata.id, metadata.provider, metadata.name) = (7, "provider".into(), Str::Utf16(b"n\0"));
            change(&mut metadata);
            metadata
        }
        let mut texts = DescriptionTexts::new();
        assert_eq!(texts.get(&described(|_| ())), None);
        texts.insert(&described(|_| ()), b"text", true);
        assert_eq!(texts.get(&described(|_| ())), Some((&b"text"[..], true)));
        for other in [
            described(|metadata| metadata.id = 8),
            described(|metadata| metadata.provider = "".into()),
            described(|metadata| metadata.name = "n\0".into()),
            described(|metadata| metadata.event_id = 1),
            described(|metadata| metadata.version = 1),
            described(|metadata| metadata.level = 1),
            described(|metadata| metadata.opcode = Some(0)),
            described(|metadata| metadata.keywords = 1),
        ] {
            assert_eq!(texts.get(&other), None, "{other:?}");
        }
    }
}
