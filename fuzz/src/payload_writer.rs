//! Payloads that are written and read back.
use arbitrary::{Result, Unstructured};
use nettrace::{FieldType, Fields, FileTime, Item, Metadata, PayloadWriter, Scalar, Str, Value, WriteError};

/// A field of a payload.
enum Written {
    Scalar(Scalar, One),
    Array(Scalar, Vec<One>),
    Bytes(Vec<u8>),
}

/// The value of a scalar.
#[derive(Clone)]
pub(crate) enum One {
    Boolean(bool),
    Unit(u16),
    Int(i64),
    UInt(u64),
    Single(f32),
    Double(f64),
    Bytes([u8; 16]),
    Text(String),
}

const SCALARS: [Scalar; 21] = [
    Scalar::Boolean32,
    Scalar::Boolean8,
    Scalar::Utf16CodeUnit,
    Scalar::Utf8CodeUnit,
    Scalar::SByte,
    Scalar::Byte,
    Scalar::Int16,
    Scalar::UInt16,
    Scalar::Int32,
    Scalar::UInt32,
    Scalar::Int64,
    Scalar::UInt64,
    Scalar::Single,
    Scalar::Double,
    Scalar::Decimal,
    Scalar::DateTime,
    Scalar::Guid,
    Scalar::Utf16String,
    Scalar::VarInt,
    Scalar::VarUInt,
    Scalar::Utf8String,
];

#[expect(clippy::cast_possible_truncation, reason = "any number will do")]
impl One {
    pub(crate) fn arbitrary(scalar: Scalar, u: &mut Unstructured<'_>) -> Result<Self> {
        Ok(match scalar {
            Scalar::Boolean32 | Scalar::Boolean8 => Self::Boolean(u.arbitrary()?),
            Scalar::Utf16CodeUnit => Self::Unit(u.arbitrary()?),
            Scalar::Utf8CodeUnit => Self::Unit(u.arbitrary::<u8>()?.into()),
            Scalar::SByte => Self::Int(u.arbitrary::<i8>()?.into()),
            Scalar::Int16 => Self::Int(u.arbitrary::<i16>()?.into()),
            Scalar::Int32 => Self::Int(u.arbitrary::<i32>()?.into()),
            Scalar::Int64 | Scalar::VarInt => Self::Int(u.arbitrary()?),
            Scalar::Byte => Self::UInt(u.arbitrary::<u8>()?.into()),
            Scalar::UInt16 => Self::UInt(u.arbitrary::<u16>()?.into()),
            Scalar::UInt32 => Self::UInt(u.arbitrary::<u32>()?.into()),
            Scalar::Single => Self::Single(u.arbitrary()?),
            Scalar::Double => Self::Double(u.arbitrary()?),
            Scalar::Decimal | Scalar::Guid => Self::Bytes(u.arbitrary()?),
            Scalar::Utf16String | Scalar::Utf8String => {
                let text: &str = u.arbitrary()?;
                Self::Text(text.chars().take(60).collect())
            }
            _ => Self::UInt(u.arbitrary()?),
        })
    }

    /// Returns the value; a text of it has no NUL, which would end it.
    pub(crate) fn without_nul(self) -> Self {
        if let Self::Text(text) = self { Self::Text(text.replace('\0', "")) } else { self }
    }

    pub(crate) fn write<'b>(&self, scalar: Scalar, w: PayloadWriter<'b>) -> PayloadWriter<'b> {
        match (scalar, self) {
            (Scalar::Boolean32, Self::Boolean(value)) => w.boolean32(*value),
            (Scalar::Boolean8, Self::Boolean(value)) => w.boolean8(*value),
            (Scalar::Utf16CodeUnit, Self::Unit(unit)) => w.utf16_code_unit(*unit),
            (Scalar::Utf8CodeUnit, Self::Unit(unit)) => w.utf8_code_unit(*unit as u8),
            (Scalar::SByte, Self::Int(number)) => w.sbyte(*number as i8),
            (Scalar::Int16, Self::Int(number)) => w.int16(*number as i16),
            (Scalar::Int32, Self::Int(number)) => w.int32(*number as i32),
            (Scalar::Int64, Self::Int(number)) => w.int64(*number),
            (Scalar::VarInt, Self::Int(number)) => w.var_int(*number),
            (Scalar::Byte, Self::UInt(number)) => w.byte(*number as u8),
            (Scalar::UInt16, Self::UInt(number)) => w.uint16(*number as u16),
            (Scalar::UInt32, Self::UInt(number)) => w.uint32(*number as u32),
            (Scalar::UInt64, Self::UInt(number)) => w.uint64(*number),
            (Scalar::VarUInt, Self::UInt(number)) => w.var_uint(*number),
            (Scalar::DateTime, Self::UInt(number)) => w.date_time(FileTime(*number)),
            (Scalar::Single, Self::Single(number)) => w.single(*number),
            (Scalar::Double, Self::Double(number)) => w.double(*number),
            (Scalar::Decimal, Self::Bytes(bytes)) => w.decimal(*bytes),
            (Scalar::Guid, Self::Bytes(bytes)) => w.guid(ipc_proto::Guid(*bytes)),
            (Scalar::Utf16String, Self::Text(text)) => w.utf16_string(&**text),
            (Scalar::Utf8String, Self::Text(text)) => w.utf8_string(&**text),
            _ => panic!("{scalar:?} has another value"),
        }
    }

    /// The text of the value that a reader must find.
    pub(crate) fn expected(&self, scalar: Scalar) -> String {
        let value = match (scalar, self) {
            (_, Self::Boolean(value)) => Value::Boolean(*value),
            (_, Self::Unit(unit)) => Value::CodeUnit(*unit),
            (_, Self::Int(number)) => Value::Int(*number),
            (Scalar::DateTime, Self::UInt(number)) => Value::DateTime(FileTime(*number)),
            (_, Self::UInt(number)) => Value::UInt(*number),
            (_, Self::Single(number)) => Value::Single(*number),
            (_, Self::Double(number)) => Value::Double(*number),
            (Scalar::Guid, Self::Bytes(bytes)) => Value::Guid(ipc_proto::Guid(*bytes)),
            (_, Self::Bytes(bytes)) => Value::Decimal(*bytes),
            (_, Self::Text(text)) => Value::Text(Str::from(&**text)),
        };
        format!("{value:?}")
    }
}

impl Written {
    fn arbitrary(u: &mut Unstructured<'_>) -> Result<Self> {
        let scalar = *u.choose(&SCALARS)?;
        match u.int_in_range(0..=5)? {
            0 => {
                let values = (0..u.int_in_range(0..=5)?).map(|_| One::arbitrary(scalar, u));
                Ok(Self::Array(scalar, values.collect::<Result<_>>()?))
            }
            1 => {
                let len = usize::from(u.arbitrary::<u8>()?).min(u.len());
                Ok(Self::Bytes(u.bytes(len)?.to_vec()))
            }
            _ => Ok(Self::Scalar(scalar, One::arbitrary(scalar, u)?)),
        }
    }

    fn field_type(&self) -> FieldType<'static> {
        match self {
            Self::Scalar(scalar, _) => (*scalar).into(),
            Self::Array(scalar, _) => FieldType::array(*scalar),
            Self::Bytes(_) => FieldType::array(Scalar::Byte),
        }
    }

    fn write<'b>(&self, w: PayloadWriter<'b>) -> PayloadWriter<'b> {
        match self {
            Self::Scalar(scalar, value) => value.write(*scalar, w),
            Self::Array(scalar, values) => w.array(values, |w, value| value.write(*scalar, w)),
            Self::Bytes(bytes) => w.byte_array(bytes),
        }
    }

    /// The items that a reader must find.
    fn expected(&self, name: &str, items: &mut Vec<String>) {
        let units = |values: &[One]| -> Vec<u16> {
            values.iter().map(|value| if let One::Unit(unit) = value { *unit } else { 0 }).collect()
        };
        match self {
            Self::Scalar(scalar, value) => items.push(format!("{name}={}", value.expected(*scalar))),
            // An array of code units is read as a text, and an array of bytes as one value.
            Self::Array(Scalar::Utf16CodeUnit, values) => {
                let bytes: Vec<u8> = units(values).into_iter().flat_map(u16::to_le_bytes).collect();
                items.push(format!("{name}={:?}", Value::Text(Str::Utf16(&bytes))));
            }
            Self::Array(Scalar::Utf8CodeUnit, values) => {
                let bytes: Vec<u8> = units(values).into_iter().map(|unit| unit.to_le_bytes()[0]).collect();
                items.push(format!("{name}={:?}", Value::Text(Str::Utf8(&bytes))));
            }
            Self::Array(Scalar::Byte, values) => {
                let byte = |value: &One| if let One::UInt(n) = value { n.to_le_bytes()[0] } else { 0 };
                let bytes: Vec<u8> = values.iter().map(byte).collect();
                items.push(format!("{name}={:?}", Value::Bytes(&bytes)));
            }
            Self::Array(scalar, values) => {
                items.push(format!("{name}["));
                items.extend(values.iter().map(|value| format!("={}", value.expected(*scalar))));
                items.push("]".to_owned());
            }
            Self::Bytes(bytes) => items.push(format!("{name}={:?}", Value::Bytes(bytes))),
        }
    }

    /// Whether the value has a text with a NUL that its type cannot hold.
    fn has_nul(&self) -> bool {
        let has_nul = |value: &One| matches!(value, One::Text(text) if text.contains('\0'));
        match self {
            Self::Scalar(Scalar::Utf16String, value) => has_nul(value),
            Self::Array(Scalar::Utf16String, values) => values.iter().any(has_nul),
            _ => false,
        }
    }
}

/// The values that a `PayloadWriter` writes are read back equal, by the fields that describe it. A buffer that is one
/// byte too short is an error that states the needed length.
///
/// `check` receives the description and the text of each value.
pub(crate) fn written(bytes: &[u8], check: impl Fn(&Metadata<'_>, &[u8], &[String])) {
    let mut u = Unstructured::new(bytes);
    let mut written = Vec::new();
    while !u.is_empty() && written.len() < 20 {
        let Ok(next) = Written::arbitrary(&mut u) else { break };
        written.push(next);
    }
    let names: Vec<String> = (0..written.len()).map(|at| format!("f{at}")).collect();
    let types: Vec<(&str, FieldType<'_>)> =
        names.iter().map(|name| &**name).zip(written.iter().map(Written::field_type)).collect();
    let write = |buf| {
        let w = written.iter().fold(PayloadWriter::new(buf), |w, next| next.write(w));
        w.finish().map(<[u8]>::len)
    };
    let mut buf = vec![0xa5; 20_000];
    let len = match write(&mut buf) {
        Err(WriteError::EmbeddedNul) if written.iter().any(Written::has_nul) => return,
        Err(error) => panic!("{error}"),
        Ok(len) => len,
    };
    assert!(!written.iter().any(Written::has_nul), "a NUL ends the text of a reader");
    if let Some(less) = len.checked_sub(1) {
        assert_eq!(write(&mut vec![0; less]), Err(WriteError::BufferTooSmall { needed: len }));
    }
    assert!(buf[len..].iter().all(|byte| *byte == 0xa5), "bytes after the payload were written");
    let payload = &buf[..len];

    let mut description = vec![0; 1000];
    let has = |scalar| written.iter().any(|next| matches!(next, Written::Scalar(of, _) if *of == scalar));
    let fields = match Fields::build(&types, &mut description) {
        Ok(fields) => fields,
        Err(WriteError::Version(_)) if has(Scalar::Utf8String) && has(Scalar::Utf8CodeUnit) => return,
        Err(error) => panic!("{error}"),
    };
    let mut expected = Vec::new();
    for (name, next) in names.iter().zip(&written) {
        next.expected(name, &mut expected);
    }
    let mut metadata = Metadata::new(1, "p", 1, "n");
    metadata.fields = fields;
    check(&metadata, payload, &expected);
}

/// Checks that the fields decode the payload to these items, and that no bytes remain.
pub(crate) fn reads(fields: &Fields<'_>, payload: &[u8], expected: &[String]) {
    let mut values = fields.values(payload);
    let read: Vec<String> = values
        .by_ref()
        .map(|item| match item {
            Item::Value { name, value } => format!("{name}={value:?}"),
            Item::BeginArray { name } => format!("{name}["),
            Item::EndArray => "]".to_owned(),
            Item::BeginObject { .. } | Item::EndObject => panic!("no object was written"),
        })
        .collect();
    assert_eq!(read, expected);
    assert_eq!(values.finish(), Ok(&[][..]));
}
