//! The shapes of fields: a description without names, for readers that decode it once.
use crate::describe::field::{ArrayKind, FieldIter, FieldType, Fields, MAX_DEPTH};
use crate::describe::scalar::Scalar;
use crate::encoding::Str;

/// The type of a field, and its place among all fields of a description.
///
/// [`Fields::shapes`] numbers the fields of a description in their order, each before the fields within it. The only
/// field within an array is its element. [`IndexedValues`](crate::IndexedValues) reads payloads by an array of shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldShape {
    /// The type of the field.
    pub kind: ShapeKind,
    /// The index of the object or array that contains the field; `None` for a field of the payload itself.
    pub parent: Option<u32>,
    /// The index after the last field within this field.
    pub end: u32,
}

/// The type of a field without the fields within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeKind {
    /// One value.
    Scalar(Scalar),
    /// A number of this type, which counts the elements of the following [`ArrayKind::CountedBefore`].
    Count(Scalar),
    /// An object.
    Object,
    /// An array, whose element is the next field.
    Array(ArrayKind),
}

/// An object or array whose fields are being numbered.
struct OpenField<'a> {
    index: u32,
    name: Str<'a>,
    kind: ShapeKind,
    /// The fields after it.
    following: FieldIter<'a>,
}

impl<'a> Fields<'a> {
    /// Passes each field, those of nested objects too, to `put`: its index, its name, and its shape. Returns the number
    /// of fields. The name of an array's element is empty.
    ///
    /// An object or array follows the fields within it, because only then its end is known.
    ///
    /// ```
    /// use nettrace::{Fields, FieldShape, IndexedValues, IndexedPart, Scalar, ShapeKind, Value};
    ///
    /// let mut space = [0; 64];
    /// let fields = Fields::build(&[("Count", Scalar::UInt32), ("Depth", Scalar::Byte)], &mut space)?;
    /// let mut shapes = Vec::new();
    /// let mut names = Vec::new();
    /// fields.shapes(|index, name, shape| {
    ///     assert_eq!(index as usize, shapes.len()); // there are no objects and arrays here
    ///     shapes.push(shape);
    ///     names.push(name.to_string());
    /// });
    /// assert_eq!(shapes[1], FieldShape { kind: ShapeKind::Scalar(Scalar::Byte), parent: None, end: 2 });
    ///
    /// let mut values = IndexedValues::new(&shapes, &[7, 0, 0, 0, 2]);
    /// assert_eq!(values.next(), Some((0, IndexedPart::Value(Value::UInt(7)))));
    /// assert_eq!(values.next(), Some((1, IndexedPart::Value(Value::UInt(2)))));
    /// assert_eq!(values.next(), None);
    /// assert_eq!(names[1], "Depth");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shapes(&self, mut put: impl FnMut(u32, Str<'a>, FieldShape)) -> u32 {
        let mut open = heapless::Vec::<OpenField<'a>, MAX_DEPTH>::new();
        let (mut fields, mut count) = (self.iter(), 0_u32);
        loop {
            let Some((field, is_count)) = fields.next_with_count() else {
                let Some(OpenField { index, name, kind, following }) = open.pop() else { return count };
                fields = following;
                let parent = open.last().map(|outer| outer.index);
                put(index, name, FieldShape { kind, parent, end: count });
                continue;
            };
            let (mut name, mut field_type) = (field.name, field.field_type);
            loop {
                let index = count;
                count = count.saturating_add(1);
                let (kind, inner, element) = match field_type {
                    FieldType::Scalar(scalar) => {
                        let kind =
                            if is_count { ShapeKind::Count(scalar) } else { ShapeKind::Scalar(scalar) };
                        let parent = open.last().map(|outer| outer.index);
                        put(index, name, FieldShape { kind, parent, end: count });
                        break;
                    }
                    FieldType::Object(fields) => (ShapeKind::Object, fields.iter(), None),
                    FieldType::Array { kind, element } => {
                        (ShapeKind::Array(kind), Fields::EMPTY.iter(), Some(element))
                    }
                };
                let following = core::mem::replace(&mut fields, inner);
                // The push cannot fail: a decoded description has at most `MAX_DEPTH` levels.
                let _ = open.push(OpenField { index, name, kind, following });
                let Some(element) = element else { break };
                (name, field_type) = (Str::EMPTY, element.field_type());
            }
        }
    }
}
