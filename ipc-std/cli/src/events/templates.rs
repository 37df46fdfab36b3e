//! What the lines of all events of a kind have in common: the text of their description, and the keys of their fields.
use nettrace::Metadata;

use super::field_template::FieldTemplate;

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
    fields: KindFields,
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

/// The known facts about the fields of a kind.
#[derive(Debug, Default)]
pub(crate) enum KindFields {
    /// No event of the kind was formatted.
    #[default]
    Unknown,
    Known(FieldTemplate),
    /// The fields have no template, because it would be too large.
    Untemplated,
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

    /// Returns what is known of the fields of a kind.
    pub(crate) fn fields(&mut self, kind: u32) -> &KindFields {
        // A kind for which there is no room stays without template: otherwise each of its events would make one.
        self.of(kind).map_or(&KindFields::Untemplated, |template| &template.fields)
    }

    /// Stores the fields of a kind; `None` if they have no template.
    pub(crate) fn set_fields(&mut self, kind: u32, fields: Option<FieldTemplate>) {
        let fields = fields.filter(|fields| self.has_room(fields.memory()));
        if let Some(template) = self.of(kind) {
            template.fields = fields.map_or(KindFields::Untemplated, KindFields::Known);
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
}

impl EventNumbers {
    const fn of(metadata: &Metadata<'_>) -> Self {
        let Metadata { event_id, version, level, opcode, keywords, .. } = *metadata;
        Self { event_id, version, level, opcode, keywords }
    }
}

#[cfg(test)]
mod tests {
    use nettrace::{FieldShape, Scalar, ShapeKind, Str};

    use super::*;

    const SHAPE: FieldShape = FieldShape { kind: ShapeKind::Scalar(Scalar::Byte), parent: None, end: 1 };

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

    #[test]
    fn templates_have_a_limit() {
        let mut templates = Templates::default();
        templates.set_fields(u32::MAX, Some(FieldTemplate::default()));
        assert!(matches!(templates.fields(u32::MAX), KindFields::Untemplated));
        let mut large = FieldTemplate::default();
        for (kind, len) in [(1, MAX_BYTES), (2, 16)] {
            large.add(SHAPE, Some(&b"n".repeat(len)), 0, false);
            templates.set_fields(kind, Some(core::mem::take(&mut large)));
        }
        assert!(matches!(templates.fields(0), KindFields::Unknown));
        assert!(matches!(templates.fields(1), KindFields::Untemplated));
        assert!(matches!(templates.fields(2), KindFields::Known(_)));
        assert!(templates.size < 4096);
    }
}
