//! What the lines of all events of a kind have in common: the text of their description, and the keys of their fields.
use nettrace::{Metadata, Str};

/// The templates of the kinds of a trace.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    kinds: Vec<Template>,
    /// The bytes of all templates.
    size: usize,
}

#[derive(Debug, Default)]
struct Template {
    description: Option<DescriptionText>,
    keys: Vec<KnownKey>,
}

/// The text of a description.
#[derive(Debug)]
struct DescriptionText {
    /// The parts of the description that labels of an event can replace.
    numbers: EventNumbers,
    text: Vec<u8>,
    is_cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EventNumbers {
    event_id: u32,
    version: u32,
    level: u32,
    opcode: Option<u8>,
    keywords: u64,
}

/// The name of a field, and the text before its value.
#[derive(Debug)]
struct KnownKey {
    is_utf16: bool,
    name: Box<[u8]>,
    text: Box<[u8]>,
}

/// The most bytes that templates take together. Other events are formatted without.
const MAX_BYTES: usize = 8 << 20;

impl Templates {
    /// Returns the text of a description of an event of this kind, and whether a part of the description is not in it.
    pub(crate) fn description(&self, kind: u32, metadata: &Metadata<'_>) -> Option<(&[u8], bool)> {
        let known = self.kinds.get(usize::try_from(kind).ok()?)?.description.as_ref()?;
        (known.numbers == EventNumbers::of(metadata)).then_some((&known.text, known.is_cut))
    }

    /// Stores the text of the description of the first event of a kind.
    pub(crate) fn set_description(&mut self, kind: u32, metadata: &Metadata<'_>, text: &[u8], is_cut: bool) {
        if !self.has_room(text.len()) {
            return;
        }
        if let Some(template) = self.of(kind).filter(|template| template.description.is_none()) {
            let (numbers, text) = (EventNumbers::of(metadata), text.to_vec());
            template.description = Some(DescriptionText { numbers, text, is_cut });
        }
    }

    /// Lends the keys of a kind, for one event.
    pub(crate) fn take_keys(&mut self, kind: u32) -> FieldKeys {
        let keys = self.of(kind).map(|template| core::mem::take(&mut template.keys)).unwrap_or_default();
        FieldKeys { keys, ..FieldKeys::default() }
    }

    /// Takes the keys back, of which the event may have added some.
    pub(crate) fn put_keys(&mut self, kind: u32, keys: FieldKeys) {
        if let Some(template) = self.of(kind) {
            template.keys = keys.keys;
        }
    }

    fn of(&mut self, kind: u32) -> Option<&mut Template> {
        let place = usize::try_from(kind).ok()?;
        if place >= self.kinds.len() {
            let more = place.saturating_add(1).saturating_sub(self.kinds.len());
            if !self.has_room(more.saturating_mul(size_of::<Template>())) {
                return None;
            }
            self.kinds.resize_with(place.saturating_add(1), Template::default);
        }
        self.kinds.get_mut(place)
    }

    /// Counts these bytes, if there is room for them.
    fn has_room(&mut self, len: usize) -> bool {
        let size = self.size.saturating_add(len);
        let has_room = size <= MAX_BYTES;
        if has_room {
            self.size = size;
        }
        has_room
    }

    /// Adds the key that follows the known ones of an event.
    pub(crate) fn add_key(&mut self, keys: &mut FieldKeys, name: Str<'_>, text: &[u8]) {
        let (is_utf16, name) = parts(name);
        let size = size_of::<KnownKey>().saturating_add(name.len()).saturating_add(text.len());
        if keys.is_off || keys.next != keys.keys.len() || !self.has_room(size) {
            keys.is_off = true;
            return;
        }
        keys.keys.push(KnownKey { is_utf16, name: name.into(), text: text.into() });
        keys.next = keys.keys.len();
    }
}

/// The keys of a payload: those of the fields that are not part of a nested object or an array, in their order.
///
/// The text of a key depends on the keys before it only, so it is the same for all events whose names are the same up
/// to it.
#[derive(Debug, Default)]
pub(crate) struct FieldKeys {
    keys: Vec<KnownKey>,
    /// The index of the next key of the event.
    next: usize,
    /// Whether a name of the event was another one.
    is_off: bool,
    has_copied: bool,
}

impl FieldKeys {
    /// Appends the text of the next key, if it has this name.
    pub(crate) fn append(&mut self, name: Str<'_>, out: &mut Vec<u8>) -> bool {
        if self.is_off {
            return false;
        }
        let Some(key) = self.keys.get(self.next) else { return false };
        if parts(name) != (key.is_utf16, &key.name) {
            self.is_off = true;
            return false;
        }
        out.extend_from_slice(&key.text);
        self.next = self.next.saturating_add(1);
        self.has_copied = true;
        true
    }

    /// Returns whether keys were appended since the last call.
    pub(crate) const fn take_has_copied(&mut self) -> bool {
        core::mem::replace(&mut self.has_copied, false)
    }
}

impl EventNumbers {
    const fn of(metadata: &Metadata<'_>) -> Self {
        let Metadata { event_id, version, level, opcode, keywords, .. } = *metadata;
        Self { event_id, version, level, opcode, keywords }
    }
}

/// Returns whether a name is UTF-16, and its bytes.
const fn parts(name: Str<'_>) -> (bool, &[u8]) {
    match name {
        Str::Utf8(bytes) => (false, bytes),
        Str::Utf16(bytes) => (true, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(change: impl FnOnce(&mut Metadata<'static>)) -> Metadata<'static> {
        let mut metadata = Metadata::default();
        (metadata.provider, metadata.name) = ("provider".into(), Str::Utf16(b"n\0"));
        change(&mut metadata);
        metadata
    }

    #[test]
    fn a_description_is_found_by_all_that_labels_replace() {
        let mut templates = Templates::default();
        assert_eq!(templates.description(7, &described(|_| ())), None);
        templates.set_description(7, &described(|_| ()), b"text", true);
        templates.set_description(7, &described(|metadata| metadata.level = 1), b"other", false);
        assert_eq!(templates.description(7, &described(|_| ())), Some((&b"text"[..], true)));
        assert_eq!(templates.description(6, &described(|_| ())), None);
        for other in [
            described(|metadata| metadata.event_id = 1),
            described(|metadata| metadata.version = 1),
            described(|metadata| metadata.level = 1),
            described(|metadata| metadata.opcode = Some(0)),
            described(|metadata| metadata.keywords = 1),
        ] {
            assert_eq!(templates.description(7, &other), None, "{other:?}");
        }
    }

    /// Appends keys of an event with these names; an unknown key has its number as text.
    fn keys(templates: &mut Templates, names: &[&str]) -> String {
        let mut keys = templates.take_keys(1);
        let mut out = Vec::new();
        for (name, number) in names.iter().zip(1..) {
            if !keys.append((*name).into(), &mut out) {
                let text = format!("{number}{name} ");
                out.extend_from_slice(text.as_bytes());
                templates.add_key(&mut keys, (*name).into(), text.to_uppercase().as_bytes());
            }
        }
        templates.put_keys(1, keys);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn keys_are_known_up_to_the_first_other_name() {
        let mut templates = Templates::default();
        assert_eq!(keys(&mut templates, &["a", "b"]), "1a 2b ");
        assert_eq!(keys(&mut templates, &["a", "b", "c"]), "1A 2B 3c ");
        assert_eq!(keys(&mut templates, &["a", "x", "c"]), "1A 2x 3c ");
        assert_eq!(keys(&mut templates, &["a", "b", "c", "d"]), "1A 2B 3C 4d ");
        assert_eq!(keys(&mut templates, &["a"]), "1A ");
    }

    #[test]
    fn templates_have_a_limit() {
        let mut templates = Templates::default();
        assert_eq!(templates.take_keys(u32::MAX).keys.len(), 0);
        let long = "n".repeat(MAX_BYTES);
        assert_eq!(keys(&mut templates, &["a", &long, "b"]), format!("1a 2{long} 3b "));
        assert_eq!(keys(&mut templates, &["a", &long, "b"]), format!("1A 2{long} 3b "));
        assert!(templates.size < 4096);
    }
}
