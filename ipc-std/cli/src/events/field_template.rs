//! The fields of all events of a kind: their shapes, and the text before each value.
use nettrace::{DecodeError, FieldShape, Fields, IndexedPart, IndexedValues, ShapeKind, Str};

use super::json;

/// The most fields of a template, with those of nested objects.
const MOST_FIELDS: usize = 4096;

/// Formats payloads without reading the description of their fields again.
#[derive(Debug, Default)]
pub(crate) struct FieldTemplate {
    shapes: Vec<FieldShape>,
    fields: Vec<TemplateField>,
    /// The texts of the fields, one after the other.
    texts: Vec<u8>,
}

/// The text before the value of a field, an object or an array.
#[derive(Debug)]
struct TemplateField {
    /// The place of the text, which has the name.
    start: usize,
    end: usize,
    /// The number of bytes at the start of the text that separate the value from the one before it.
    separator_len: usize,
    /// Whether a part of the name is not in the text.
    is_cut: bool,
    /// Whether this is an object without a name that is the whole payload, which has no braces.
    is_payload: bool,
}

/// The fields of a payload that were appended to a line.
#[derive(Debug)]
pub(crate) struct Appended<'p> {
    /// The bytes of the payload after the fields.
    pub(crate) rest: &'p [u8],
    /// Why a field did not fit.
    pub(crate) error: Option<String>,
    /// Whether a part of the fields is not in the line.
    pub(crate) is_cut: bool,
}

/// Returns the names and shapes of fields by their indexes; `None` if they are more than a template can have.
pub(crate) fn names_and_shapes<'a>(fields: &Fields<'a>) -> Option<Vec<(Str<'a>, FieldShape)>> {
    let mut all = Vec::new();
    let count = fields.shapes(|index, name, shape| {
        if all.len() < MOST_FIELDS {
            all.push((index, name, shape));
        }
    });
    if usize::try_from(count).ok()? != all.len() {
        return None;
    }
    // An object or array comes after the fields within it, whose indexes are higher.
    all.sort_unstable_by_key(|(index, ..)| *index);
    Some(all.into_iter().map(|(_, name, shape)| (name, shape)).collect())
}

impl FieldTemplate {
    /// Adds the next field, an object without a name that is the whole payload if there is no text.
    pub(crate) fn add(&mut self, shape: FieldShape, text: Option<&[u8]>, separator_len: usize, is_cut: bool) {
        let start = self.texts.len();
        self.texts.extend_from_slice(text.unwrap_or_default());
        let (end, is_payload) = (self.texts.len(), text.is_none());
        self.fields.push(TemplateField { start, end, separator_len, is_cut, is_payload });
        self.shapes.push(shape);
    }

    /// Returns the bytes of memory that the template takes.
    pub(crate) fn memory(&self) -> usize {
        let field = size_of::<FieldShape>().saturating_add(size_of::<TemplateField>());
        self.fields.len().saturating_mul(field).saturating_add(self.texts.len())
    }

    /// Appends the fields of a payload, until the line is longer than `limit`.
    pub(crate) fn append<'p>(&self, payload: &'p [u8], limit: usize, out: &mut Vec<u8>) -> Appended<'p> {
        let mut values = IndexedValues::new(&self.shapes, payload);
        // The innermost open object or array, and whether nothing precedes the next value in it.
        let (mut open, mut is_first, mut is_cut) = (None, true, false);
        for (index, part) in values.by_ref() {
            if out.len() > limit {
                self.close(open, out);
                return Appended { rest: &[], error: None, is_cut: true };
            }
            let Some((field, shape)) = self.field(index) else { continue };
            let [begin, end] = brackets(shape.kind);
            match &part {
                IndexedPart::Value(value) => {
                    out.extend_from_slice(self.text(field, is_first));
                    json::push_value(value, out);
                    is_first = false;
                }
                IndexedPart::BeginObject | IndexedPart::BeginArray => {
                    open = Some(index);
                    if !field.is_payload {
                        out.extend_from_slice(self.text(field, is_first));
                        out.push(begin);
                        is_first = true;
                    }
                }
                IndexedPart::EndObject | IndexedPart::EndArray => {
                    open = shape.parent;
                    if !field.is_payload {
                        out.push(end);
                        is_first = false;
                    }
                }
            }
            is_cut |= field.is_cut;
        }
        let (rest, error) = unread(values.finish(), payload);
        Appended { rest, error, is_cut }
    }

    #[inline]
    fn field(&self, index: u32) -> Option<(&TemplateField, &FieldShape)> {
        let index = usize::try_from(index).ok()?;
        Some((self.fields.get(index)?, self.shapes.get(index)?))
    }

    /// Returns the text of a field, without the separator if nothing precedes its value.
    #[inline]
    fn text(&self, field: &TemplateField, is_first: bool) -> &[u8] {
        let start = if is_first { field.start.saturating_add(field.separator_len) } else { field.start };
        self.texts.get(start..field.end).unwrap_or_default()
    }

    /// Closes an object or array, and those around it.
    fn close(&self, mut open: Option<u32>, out: &mut Vec<u8>) {
        while let Some((field, shape)) = open.and_then(|index| self.field(index)) {
            if !field.is_payload {
                let [_, end] = brackets(shape.kind);
                out.push(end);
            }
            open = shape.parent;
        }
    }
}

/// Returns the brackets of an array, or else those of an object.
const fn brackets(kind: ShapeKind) -> [u8; 2] {
    match kind {
        ShapeKind::Array(_) => *b"[]",
        _ => *b"{}",
    }
}

/// Returns the bytes of the payload after the fields, and why a field did not fit.
pub(crate) fn unread<'p>(
    read: Result<&'p [u8], DecodeError>,
    payload: &'p [u8],
) -> (&'p [u8], Option<String>) {
    match read {
        Ok(rest) => (rest, None),
        Err(error) => (payload.get(error.offset..).unwrap_or_default(), Some(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use nettrace::Scalar;

    use super::*;

    #[test]
    fn too_many_fields_have_no_template() {
        let mut space = vec![0; 1 << 20];
        for (count, has_template) in [(0, true), (MOST_FIELDS, true), (MOST_FIELDS + 1, false)] {
            let fields = Fields::build(&vec![("f", Scalar::Byte); count], &mut space).unwrap();
            assert_eq!(names_and_shapes(&fields).map(|all| all.len()), has_template.then_some(count));
        }
    }
}
