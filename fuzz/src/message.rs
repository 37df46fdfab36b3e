//! The property of decoded values: they encode to bytes that decode to an equal value.
use core::fmt::Debug;
use core::hash::{BuildHasher, BuildHasherDefault, Hash};
use std::hash::DefaultHasher;

use arbitrary::Unstructured;
use ipc_proto::types::{EnvironmentEntries, Format, Provider, Status};
use ipc_proto::wire::{BufferTooSmall, PartValue, TextBuf, Writer, decode, decode_prefix};
use ipc_proto::{
    Answer, Array, Code, CollectTracing2, Decode, Encode, EncodeError, InvalidValue, Message, Parsed,
    Request, ServerError, Text, Violation, encode,
};

/// A decoded value encodes to bytes that decode to an equal value. The bytes are used as a message, as the payload of
/// every answer, and as a source of values.
pub fn message(bytes: &[u8]) {
    match Message::parse(bytes) {
        Ok(Parsed::Complete { value, used }) => {
            assert_eq!(used, Message::HEADER_LEN + value.payload.len());
            assert_eq!(&bytes[Message::HEADER_LEN..used], value.payload);
            if let Ok(asked) = value.request() {
                request(asked);
            }
            answers(value.payload);
        }
        Ok(Parsed::Partial { needed }) => assert!(needed > bytes.len()),
        Err(error) => assert!(error.offset < bytes.len()),
    }
    answers(bytes);
    let _ = values(&mut Unstructured::new(bytes));
}

/// Checks values that are generated from the bytes.
fn values(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    texts(u.arbitrary()?, u.arbitrary()?);
    request(u.arbitrary()?);
    let providers: Vec<Provider<'_>> = u.arbitrary()?;
    array(Array::from(&providers[..]), &mut Vec::new());
    request(Request::CollectTracing2(CollectTracing2 {
        buffer_mb: u.arbitrary()?,
        format: Format::NET_TRACE,
        rundown: u.arbitrary()?,
        providers: Array::from(&providers[..]),
    }));
    Ok(())
}

fn request(request: Request<'_>) {
    let len = Message::HEADER_LEN + request.encoded_len();
    // For a message that is too long, `encode` returns that error, even if the buffer is also too small.
    let mut buf = vec![0xa5; (len + 64).min(Message::MAX_LEN + 1)];
    if len > Message::MAX_LEN {
        assert_eq!(encode(request.code(), &request, &mut buf), Err(EncodeError::MessageTooLong { len }));
        return;
    }
    let too_small = encode(request.code(), &request, &mut buf[..len - 1]).map(|bytes| bytes.len());
    assert_eq!(too_small, Err(EncodeError::BufferTooSmall { needed: len }));
    assert_eq!(encode(request.code(), &request, &mut buf).map(|bytes| bytes.len()), Ok(len));
    assert!(buf[len..].iter().all(|byte| *byte == 0xa5), "writes after the message");
    let Ok(Parsed::Complete { value, used }) = Message::parse(&buf) else {
        panic!("{request:?} does not parse")
    };
    assert_eq!((used, value.code), (len, request.code()));
    assert_eq!(value.request(), Ok(request));
    assert_eq!(value.request().map(|request| request.check()), Ok(request.check()));
    if let Err(invalid) = request.check() {
        check_place(&buf[..len], &invalid);
    }
}

/// Checks that the path of an invalid value leads to a value of the message, and that this value breaks the rule.
fn check_place(message: &[u8], invalid: &InvalidValue) {
    let place = invalid.place.to_string();
    let (mut numbers, mut found) = (Vec::new(), None);
    Message::inspect(message, None, &mut |part| {
        let path = part.path.to_string();
        if let PartValue::Number { number, .. } = part.value {
            numbers.push((path.clone(), number));
        }
        // The inspector reports values, not lists. If the path names a list, each element of the list is the place.
        if path == place || path.strip_prefix(&place).is_some_and(|inner| inner.starts_with(['.', '['])) {
            found = Some(match part.value {
                PartValue::Text(text) => text.units().next().is_none_or(|unit| unit == 0),
                _ => false,
            });
        }
    })
    .expect("it is well-formed");
    let is_empty = found.unwrap_or_else(|| panic!("{invalid}: there is no such place"));
    let number = || numbers.iter().find(|(path, _)| *path == place).map(|(_, number)| *number);
    match invalid.violation {
        Violation::ProviderLevel => assert!(number() > Some(5), "{invalid}"),
        Violation::ProviderName | Violation::TracepointSetName => assert!(is_empty, "{invalid}"),
        Violation::DuplicateEventId => {
            // The ids of all sets of a provider count as one list.
            let list = place.split_once(".event_ids").expect("it is an id").0;
            let list = list.split_once(".sets[").map_or(list, |(list, _)| list);
            let equal = |(path, id): &&(String, i128)| {
                path.starts_with(list) && path.contains(".event_ids[") && Some(*id) == number()
            };
            let first = numbers.iter().find(equal).expect("it is there");
            assert_ne!(first.0, place, "the first one is not the duplicate");
        }
        _ => {}
    }
}

macro_rules! responses {
    ($([$name:ident: $response:ty { $($fields:tt)* }])*) => {
        /// Decodes the bytes as the response to each command.
        fn responses(bytes: &[u8]) {
            $({
                fn response<'r>(bytes: &'r [u8], buf: &'r mut Vec<u8>) {
                    value::<$response>(bytes, buf);
                }
                response(bytes, &mut Vec::new());
            })*
        }
    };
}
ipc_proto::for_each_response!(responses);

/// Decodes the bytes as the payload of every kind of answer, and as the environment after one.
fn answers(bytes: &[u8]) {
    responses(bytes);
    for row in Request::ALL {
        let answer = Message { code: Code::OK, payload: bytes }.response(row.code);
        if let Ok(Answer::Ok(response)) = answer {
            let payload = &encoded(&response)[..];
            assert!(bytes.is_empty() || bytes.starts_with(payload));
            assert_eq!(Message { code: Code::OK, payload }.response(row.code), answer);
        }
    }
    value::<Status>(bytes, &mut Vec::new());
    value::<ServerError<'_>>(bytes, &mut Vec::new());
    if let Ok(environment) = decode::<EnvironmentEntries<'_>>(bytes) {
        array(environment, &mut Vec::new());
        environment.iter().zip(environment.iter().skip(1)).for_each(|(a, b)| texts(a, b));
    }
    if let Ok(providers) = decode::<Array<'_, Provider<'_>>>(bytes) {
        array(providers, &mut Vec::new());
    }
}

/// If the bytes decode to a value, it encodes to the same bytes: no part of an answer has two forms.
pub(crate) fn value<'a, T: Decode<'a> + Encode + PartialEq + Debug>(bytes: &'a [u8], buf: &'a mut Vec<u8>) {
    match decode_prefix::<T>(bytes) {
        Ok((value, rest)) => {
            *buf = encoded(&value);
            let taken = &bytes[..bytes.len() - rest.len()];
            assert!(taken.is_empty() || buf == taken);
            assert_eq!(decode(buf), Ok(value));
        }
        Err(error) => assert!(error.offset <= bytes.len()),
    }
}

/// Returns the wire form, after writing it with exactly the room that it needs, with a byte less, and in two pieces.
pub(crate) fn encoded(value: &impl Encode) -> Vec<u8> {
    let len = value.encoded_len();
    let mut buf = vec![0xa5; len];
    let mut w = Writer::new(&mut buf);
    value.encode(&mut w);
    assert_eq!(w.finish().map(|bytes| bytes.len()), Ok(len));

    let mut pieces = vec![0xa5; len];
    let (head, tail) = pieces.split_at_mut(len / 3);
    for (piece, skip) in [(head, 0), (tail, len / 3)] {
        let room = piece.len();
        let mut w = Writer::window(piece, skip);
        value.encode(&mut w);
        let needed = len - skip;
        let fits = if room < needed { Err(BufferTooSmall { needed }) } else { Ok(needed) };
        assert_eq!(w.finish().map(|bytes| bytes.len()), fits);
    }
    assert_eq!(pieces, buf);
    buf
}

/// A decoded array equals an array of a slice with the same values.
fn array<'a, T: Decode<'a> + Encode + Copy + Eq + Hash + Debug>(array: Array<'a, T>, values: &'a mut Vec<T>) {
    values.extend(array);
    assert_eq!(
        (array.len(), array.iter().len(), array.is_empty()),
        (values.len(), values.len(), values.is_empty())
    );
    let slice = Array::from(&values[..]);
    assert_eq!(encoded(&array), encoded(&slice));
    assert_eq!((array, hash(&array)), (slice, hash(&slice)));
    if let Some((_, fewer)) = values.split_last() {
        assert_ne!(array, Array::from(fewer));
    }
}

/// Texts compare, order and hash by their units, whatever form each text is in. Null comes before all texts.
fn texts(a: Text<'_>, b: Text<'_>) {
    let (a_forms, b_forms) = (Forms::of(a), Forms::of(b));
    let (same, order) = (a_forms.key() == b_forms.key(), a_forms.key().cmp(&b_forms.key()));
    assert_eq!(a_forms.owned == b_forms.owned, same);
    assert_eq!(a_forms.owned.cmp(&b_forms.owned), order);
    let b_all = b_forms.all(b);
    for x in a_forms.all(a) {
        for y in &b_all {
            assert_eq!(x == *y, same);
            assert_eq!(x.cmp(y), order);
        }
    }
}

/// A text in every form: from the wire, as UTF-16, owned, and as UTF-8 if it is valid.
struct Forms {
    wire: Vec<u8>,
    units: Vec<u16>,
    owned: TextBuf,
    utf8: Option<String>,
}

impl Forms {
    fn of(text: Text<'_>) -> Self {
        let owned = text.to_text_buf();
        let (units, utf8) = (text.units().collect::<Vec<u16>>(), owned.to_utf8());
        assert_eq!(utf8.clone().unwrap_or_default(), text.to_string());
        let exact = String::from_utf16(&units).ok();
        if exact.is_some() {
            assert_eq!(utf8, exact.clone().filter(|_| !text.is_null()));
        }
        Self { wire: encoded(&text), units, utf8: exact.and(utf8), owned }
    }

    /// Returns the content by which texts are compared.
    fn key(&self) -> Option<&[u16]> {
        (!self.owned.as_text().is_null()).then_some(&self.units)
    }

    /// Returns all forms, after checking that they agree.
    fn all<'a>(&'a self, text: Text<'a>) -> Vec<Text<'a>> {
        let mut all = vec![text, self.owned.as_text(), decode(&self.wire).expect("a text that was encoded")];
        if !text.is_null() {
            all.push(Text::from_utf16(&self.units));
        }
        if text.is_null() || self.utf8.is_some() {
            all.push(Text::from(self.utf8.as_deref()));
        }
        for form in &all {
            assert!(form.units().eq(self.units.iter().copied()));
            assert_eq!((form.is_null(), form.is_empty()), (text.is_null(), self.units.is_empty()));
            assert_eq!(hash(form), hash(&text));
            assert_eq!(form.to_text_buf(), self.owned);
        }
        all
    }
}

fn hash(value: &impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}
