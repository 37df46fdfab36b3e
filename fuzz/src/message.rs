use core::fmt::Debug;
use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;

use arbitrary::Unstructured;
use ipc_proto::types::{
    Environment, Format, ProcessEnvironment, ProcessInfo, ProcessInfo2, ProcessInfo3, Provider, SessionId,
    Status,
};
use ipc_proto::wire::{Writer, decode, decode_prefix};
use ipc_proto::{
    Array, CollectTracing2, Decode, Encode, EncodeError, Message, Parsed, Request, ServerError, Text, encode,
};

/// What decodes, encodes to something that decodes to an equal value, whichever way the bytes are looked at.
///
/// They are taken as a message, as the payload of every answer, and as a source of values.
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

/// Values made of the bytes: what no message brings, and no file of `testdata/` has.
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
    if matches!(request, Request::Unknown(message) if Request::ALL.iter().any(|row| row.code == message.code))
    {
        return; // nothing that decoding brings
    }
    let len = Message::HEADER_LEN + request.encoded_len();
    let mut buf = [0xa5; Message::MAX_LEN + 1];
    if len > Message::MAX_LEN {
        assert_eq!(encode(request.code(), &request, &mut buf), Err(EncodeError::MessageTooLong { len }));
        return;
    }
    let too_small = encode(request.code(), &request, &mut buf[..len - 1]).map(|bytes| bytes.len());
    assert_eq!(too_small, Err(EncodeError::BufferTooSmall { needed: len }));
    assert_eq!(encode(request.code(), &request, &mut buf).map(|bytes| bytes.len()), Ok(len));
    assert_eq!(buf[len..], [0xa5; Message::MAX_LEN + 1][len..], "writes behind the message");
    let Ok(Parsed::Complete { value, used }) = Message::parse(&buf) else {
        panic!("{request:?} does not parse")
    };
    assert_eq!((used, value.code), (len, request.code()));
    assert_eq!(value.request(), Ok(request));
}

/// The bytes as the payload of every kind of answer, and as what follows one.
fn answers(bytes: &[u8]) {
    value::<ProcessInfo<'_>>(bytes, &mut Vec::new());
    value::<ProcessInfo2<'_>>(bytes, &mut Vec::new());
    value::<ProcessInfo3<'_>>(bytes, &mut Vec::new());
    value::<ProcessEnvironment>(bytes, &mut Vec::new());
    value::<SessionId>(bytes, &mut Vec::new());
    value::<Status>(bytes, &mut Vec::new());
    value::<ServerError<'_>>(bytes, &mut Vec::new());
    if let Ok(environment) = decode::<Environment<'_>>(bytes) {
        array(environment, &mut Vec::new());
        environment.iter().zip(environment.iter().skip(1)).for_each(|(a, b)| texts(a, b));
    }
    if let Ok(providers) = decode::<Array<'_, Provider<'_>>>(bytes) {
        array(providers, &mut Vec::new());
    }
}

/// What was decoded encodes to the bytes that it came from, if it took any: no part of an answer has two forms.
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

/// The wire form, written with exactly the room it needs, with a byte less, and in two pieces.
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
        let fits = if room < needed { Err(EncodeError::BufferTooSmall { needed }) } else { Ok(needed) };
        assert_eq!(w.finish().map(|bytes| bytes.len()), fits);
    }
    assert_eq!(pieces, buf);
    buf
}

/// An array is the same from the wire and from a slice.
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

/// Texts compare, order and hash by their units, whatever form each is in; null comes before all.
fn texts(a: Text<'_>, b: Text<'_>) {
    let key = |text: &Text<'_>| text.non_null().map(|text| text.units().collect::<Vec<u16>>());
    forms(a, |x| {
        assert_eq!((key(&x), x.is_null(), x.is_empty()), (key(&a), a.is_null(), a.units().next().is_none()));
        assert_eq!(hash(&x), hash(&a));
        forms(b, |y| {
            assert_eq!(x == y, key(&a) == key(&b));
            assert_eq!(x.cmp(&y), key(&a).cmp(&key(&b)));
            assert_eq!(x.to_text_buf() == y.to_text_buf(), x == y);
            assert_eq!(x.to_text_buf().cmp(&y.to_text_buf()), x.cmp(&y));
        });
    });
}

/// The text in every form there is: from the wire, as UTF-16, owned, and as UTF-8 if it has one.
fn forms(text: Text<'_>, each: impl Fn(Text<'_>)) {
    each(text);
    let owned = text.to_text_buf();
    each(owned.as_text());
    let units: Vec<u16> = text.units().collect();
    if !text.is_null() {
        each(Text::from_utf16(&units));
    }
    let wire = encoded(&text);
    each(decode(&wire).expect("a text that was encoded"));
    let utf8 = owned.to_utf8();
    assert_eq!(utf8.clone().unwrap_or_default(), text.to_string());
    if let Ok(exact) = String::from_utf16(&units) {
        assert_eq!(utf8, (!text.is_null()).then_some(exact));
        each(Text::from(utf8.as_deref()));
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
