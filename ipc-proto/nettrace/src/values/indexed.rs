//! The values of a payload with the indexes of their fields, in place of names.
use ipc_proto::wire::{steps, to_usize};

use crate::describe::{ArrayKind, FieldShape, MAX_DEPTH, ShapeKind};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::values::payload_reader::{Elements, PayloadReader};
use crate::values::value::Value;

/// A part of a payload, as [`IndexedValues`] returns it with the index of its field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IndexedPart<'a> {
    /// A value.
    Value(Value<'a>),
    /// An object begins. The fields of the object follow.
    BeginObject,
    /// The object ends.
    EndObject,
    /// An array begins; its elements follow.
    BeginArray,
    /// The array ends.
    EndArray,
}

/// Reads the values of a payload in their order, by the shapes of its fields: [`Values`](crate::Values) without names.
///
/// The caller stores the [shapes](crate::Fields::shapes) of a description once, in the order of their indexes. It
/// stores what it needs for a field, such as its name, at the same index. An `S` is a [`FieldShape`], or becomes one.
///
/// An item is the index of a field, and a part. The values, the errors, and the valid values before an error are those
/// of [`Values`](crate::Values), but the limit of the work does not include descriptions, which this type does not
/// read: each byte of the payload allows four items, and 32 items are free. Shapes that no description has are errors
/// or other values, and no more work.
#[derive(Clone, Debug)]
pub struct IndexedValues<'s, 'a, S> {
    shapes: &'s [S],
    payload: PayloadReader<'a>,
    level: Level,
    outer: heapless::Vec<Level, MAX_DEPTH>,
    error: Option<DecodeError>,
}

/// An open object or array, or the payload itself.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Its index.
    index: u32,
    /// The index of the next field, or of the element.
    next: u32,
    repeats: Repeats,
}

/// When an open object or array ends.
#[derive(Clone, Copy, Debug)]
enum Repeats {
    /// An object ends at the field with this index.
    Object(u32),
    /// An array ends after so many elements.
    Array(u32),
    /// An array elsewhere in the payload ends with its bytes.
    Elsewhere,
}

impl<'s, 'a, S: Copy + TryInto<FieldShape>> IndexedValues<'s, 'a, S> {
    /// Returns the values of a payload whose fields have these shapes.
    #[must_use]
    #[inline]
    pub fn new(shapes: &'s [S], payload: &'a [u8]) -> Self {
        let end = u32::try_from(shapes.len()).unwrap_or(u32::MAX);
        Self {
            shapes,
            payload: PayloadReader::new(payload),
            level: Level { index: 0, next: 0, repeats: Repeats::Object(end) },
            outer: heapless::Vec::new(),
            error: None,
        }
    }

    /// Reads the remaining values, and returns the bytes after the last one, as [`Values::finish`](crate::Values::finish).
    ///
    /// # Errors
    /// The first error of the payload, with its offset.
    pub fn finish(mut self) -> Result<&'a [u8], DecodeError> {
        while self.next().is_some() {}
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.payload.rest()),
        }
    }

    /// Returns the error that ended the iteration, if there was one.
    #[must_use]
    #[inline]
    pub const fn error(&self) -> Option<DecodeError> {
        self.error
    }

    /// Returns the shape with an index, if a description can have it.
    #[inline]
    fn shape(&self, index: u32) -> Option<FieldShape> {
        (*self.shapes.get(to_usize(index))?).try_into().ok()
    }

    /// Begins a value.
    #[inline(always)]
    fn step(&mut self) -> Result<(u32, IndexedPart<'a>), DecodeError> {
        self.payload.spend(1)?;
        let index = self.level.next;
        let Some(shape) = self.shape(index) else {
            return Err(self.payload.error(DecodeErrorKind::UnknownType));
        };
        match &mut self.level.repeats {
            Repeats::Object(_) => self.level.next = shape.end,
            Repeats::Array(left) => *left = left.wrapping_sub(1),
            Repeats::Elsewhere => {}
        }
        let part = match shape.kind {
            ShapeKind::Scalar(scalar) => IndexedPart::Value(Value::read(scalar, &mut self.payload.r)?),
            ShapeKind::Count(scalar) => IndexedPart::Value(self.payload.count(scalar)?),
            ShapeKind::Object => {
                self.open(index, Repeats::Object(shape.end))?;
                IndexedPart::BeginObject
            }
            ShapeKind::Array(kind) => self.array(index, kind)?,
        };
        Ok((index, part))
    }

    #[inline(never)]
    fn array(&mut self, index: u32, kind: ArrayKind) -> Result<IndexedPart<'a>, DecodeError> {
        let unit = match self.shape(index.wrapping_add(1)).map(|shape| shape.kind) {
            Some(ShapeKind::Scalar(unit)) => Some(unit),
            _ => None,
        };
        match self.payload.elements(kind, unit)? {
            Elements::Whole(value) => return Ok(IndexedPart::Value(value)),
            Elements::Counted(count) => self.open(index, Repeats::Array(count))?,
            Elements::Elsewhere(elements) => {
                self.open(index, Repeats::Elsewhere)?;
                self.payload.enter(elements);
            }
        }
        Ok(IndexedPart::BeginArray)
    }

    fn open(&mut self, index: u32, repeats: Repeats) -> Result<(), DecodeError> {
        let inner = Level { index, next: index.wrapping_add(1), repeats };
        let before = core::mem::replace(&mut self.level, inner);
        self.outer.push(before).map_err(|before| {
            self.level = before;
            self.payload.error(DecodeErrorKind::TooDeep)
        })
    }

    /// Closes the innermost object or array.
    #[inline(never)]
    fn close(&mut self) -> Option<(u32, IndexedPart<'a>)> {
        let outer = self.outer.pop()?;
        let Level { index, repeats, .. } = core::mem::replace(&mut self.level, outer);
        let part = match repeats {
            Repeats::Object(_) => IndexedPart::EndObject,
            Repeats::Array(_) => IndexedPart::EndArray,
            Repeats::Elsewhere => {
                self.payload.leave();
                IndexedPart::EndArray
            }
        };
        Some((index, part))
    }

    #[cold]
    fn fail(&mut self, error: DecodeError) -> Option<(u32, IndexedPart<'a>)> {
        self.error = self.error.or(Some(error));
        // Without work, each further call fails and closes one open object or array.
        self.payload.work = 0;
        self.close()
    }
}

impl<'a, S: Copy + TryInto<FieldShape>> Iterator for IndexedValues<'_, 'a, S> {
    type Item = (u32, IndexedPart<'a>);

    #[inline(always)]
    fn next(&mut self) -> Option<(u32, IndexedPart<'a>)> {
        steps::count(1);
        let is_over = match self.level.repeats {
            Repeats::Object(end) => self.level.next >= end,
            Repeats::Array(left) => left == 0,
            Repeats::Elsewhere => self.payload.r.rest().is_empty(),
        };
        if is_over {
            return self.close();
        }
        match self.step() {
            Ok(item) => Some(item),
            Err(error) => self.fail(error),
        }
    }
}
impl<S: Copy + TryInto<FieldShape>> core::iter::FusedIterator for IndexedValues<'_, '_, S> {}
