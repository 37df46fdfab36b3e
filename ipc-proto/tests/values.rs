//! Texts, arrays, codes, names and errors: their equality, order, forms and parts.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]
use core::cmp::Ordering;
use core::error::Error;
use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;

use ipc_proto::types::{
    Architecture, ArgumentError, ArgumentList, OperatingSystem, PerfMapType, ProviderArguments,
};
use ipc_proto::wire::{Writer, decode};
use ipc_proto::{
    Array, Code, DecodeError, DecodeErrorKind, EnablePerfMap, Encode, HResult, PipeName, ProtocolError,
    Request, RequestError, RouterSocketName, SocketName, Text, Violation,
};

/// Returns the wire form of a value.
fn raw(value: &impl Encode) -> Vec<u8> {
    let mut buf = [0xa5; 256];
    let mut w = Writer::new(&mut buf);
    value.encode(&mut w);
    w.finish().unwrap().to_vec()
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn clone<T: Clone>(value: &T) -> T {
    value.clone()
}

#[test]
fn a_text_is_its_code_units_whatever_it_was_made_of() {
    for s in ["", "plain", "Grüße", "日本", "\u{1f980}"] {
        let units: Vec<u16> = s.encode_utf16().collect();
        let count = u32::try_from(units.len() + 1).unwrap();
        let mut bytes = count.to_le_bytes().to_vec();
        bytes.extend(units.iter().copied().chain([0]).flat_map(u16::to_le_bytes));
        let forms = [Text::new(s), Text::from(Some(s)), Text::from_utf16(&units), decode(&bytes).unwrap()];
        for text in forms {
            assert_eq!(raw(&text), bytes, "{s:?}");
            assert_eq!(forms.map(|form| (form == text, hash(&form) == hash(&text))), [(true, true); 4]);
            assert_eq!((text == *s, text == s), (true, true));
            assert_eq!((text == *"other", text == "other"), (false, false));
            assert_ne!(hash(&text), hash(&Text::from("other")));
        }
    }
    let decoded: Text<'_> = decode(b"\x02\0\0\0\0\xd8\0\0").unwrap();
    assert_eq!(decoded.as_wire(), Some(&b"\0\xd8"[..]));
    let others = [Text::NULL, Text::from("a"), Text::from_utf16(&[0xd800])];
    assert_eq!(others.map(|text| text.as_wire()), [None; 3]);
    assert_ne!(Text::NULL, Text::from(""));
    assert_ne!(hash(&Text::NULL), hash(&Text::from("")));
}

#[test]
fn null_is_before_every_text() {
    let sorted = [Text::NULL, Text::from(""), Text::from("A"), Text::from("AA"), Text::from("B")];
    for pair in sorted.windows(2) {
        assert_eq!(pair[0].partial_cmp(&pair[1]), Some(Ordering::Less), "{pair:?}");
        assert_eq!(pair[1].partial_cmp(&pair[0]), Some(Ordering::Greater), "{pair:?}");
    }
}

#[test]
fn an_array_is_its_values_whatever_it_was_made_of() {
    let (values, others) = ([1u32, 2, 3], [1u32, 2, 4]);
    let array = Array::from(&values);
    let bytes = raw(&array);
    let read: Array<'_, u32> = decode(&bytes).unwrap();
    assert_eq!((array, clone(&array), clone(&read)), (read, read, array));
    assert_eq!(hash(&array), hash(&read));
    assert_ne!(hash(&array), hash(&Array::from(&others)));
}

#[test]
fn an_array_may_be_read_over_and_over() {
    let array = Array::from(&[1u32, 2, 3]);
    let mut sum = 0;
    for value in &array {
        sum += value;
    }
    assert_eq!((sum, array.into_iter().max()), (6, Some(3)));
    assert_eq!((Array::<'_, u32>::default(), Array::<'_, u32>::EMPTY.len()), (Array::EMPTY, 0));
}

#[cfg(feature = "alloc")]
#[test]
fn an_owned_text_is_the_text() {
    use ipc_proto::wire::TextBuf;

    let owned = TextBuf::from("Grüße");
    assert_eq!(owned.as_text(), Text::from("Grüße"));
    assert_eq!(owned.as_text().to_text_buf(), owned);
    assert_eq!((owned == *"Grüße", owned == "Grüße"), (true, true));
    assert_eq!((owned == *"Gruß", owned == "Gruß"), (false, false));
    assert_eq!((owned.to_string(), format!("{owned:?}")), ("Grüße".to_owned(), "\"Grüße\"".to_owned()));
    assert!(!owned.is_empty());
    assert!(TextBuf::from("").is_empty() && Text::NULL.to_text_buf().is_empty());
    assert_ne!(TextBuf::from(""), Text::NULL.to_text_buf());
}

#[test]
fn a_writer_counts_what_it_was_given() {
    let mut buf = [0; 4];
    let mut w = Writer::new(&mut buf);
    assert!(w.is_empty());
    assert_eq!(w.len(), 0);
    w.bytes(&[1, 2, 3, 4, 5]);
    assert!(!w.is_empty());
    assert_eq!(w.len(), 5, "fitting or not");
}

#[test]
fn a_code_is_a_set_and_an_id() {
    assert_eq!((Code(0x0407).set(), Code(0x0407).id()), (4, 7));
    assert_eq!((Code::OK.set(), Code::OK.id()), (0xff, 0));
}

#[test]
fn a_result_code_may_have_a_name() {
    assert_eq!(HResult::from_win32(0xcdef), HResult(0x8007_cdef));
    assert_eq!(HResult::FAIL.name(), Some("DS_IPC_E_FAIL"));
    for code in HResult::NAMED {
        assert!(code.name().is_some() && code.hint().is_some_and(|hint| !hint.is_empty()), "{code}");
    }
    assert_eq!((HResult(7).name(), HResult(7).hint()), (None, None));
    // The specification and runtimes have different codes for an absent variable.
    let [sent, specified] = [HResult(0x8007_00cb), HResult(0x8000_00cb)];
    assert_eq!(sent.name(), Some("ERROR_ENVVAR_NOT_FOUND"));
    assert_eq!(specified.name(), Some("DS_IPC_E_ENVVAR_NOT_FOUND"));
    assert_eq!(sent.hint(), specified.hint());
    assert_eq!([sent, specified], [HResult::ENVVAR_NOT_FOUND, HResult::SPECIFIED_ENVVAR_NOT_FOUND]);
}

#[test]
fn longest_names_fit_their_buffers() {
    let (process_id, key) = (u32::MAX, u64::MAX);
    let socket = SocketName { process_id, disambiguation_key: key }.to_text();
    assert_eq!(socket.as_ref(), "dotnet-diagnostic-4294967295-18446744073709551615-socket");
    let router = RouterSocketName { process_id, start_seconds: key }.to_text();
    assert_eq!(router.as_ref(), "dotnet-diagnostic-dsrouter-4294967295-18446744073709551615-socket");
    let pipe = PipeName { process_id }.to_text();
    assert_eq!(pipe.as_ref(), "dotnet-diagnostic-4294967295");
    // The texts are stored in the values themselves, each with a length.
    let two_words = 2 * size_of::<usize>();
    assert!(size_of_val(&router) < router.as_str().len() + two_words);
    assert!(size_of_val(&pipe) < pipe.as_str().len() + two_words);
}

#[test]
fn an_error_made_of_another_names_it() {
    let cause = DecodeError { kind: DecodeErrorKind::BadMagic, offset: 3 };
    let source = |error: &dyn Error| error.source().map(ToString::to_string);
    assert_eq!(source(&RequestError::Decode(cause)), Some(cause.to_string()));
    let request = Request::EnablePerfMap(EnablePerfMap { perf_map_type: PerfMapType(4) });
    let error = request.into_checked().unwrap_err();
    assert_eq!(source(&error), Some(Violation::PerfMapType.to_string()));
    assert_eq!(error.to_string(), format!("perf_map_type: {}", Violation::PerfMapType));
    assert_eq!(source(&ProtocolError::Decode(cause)), Some(cause.to_string()));
    assert_eq!(source(&ProtocolError::Closed { received: 0 }), None);
}

#[cfg(feature = "arbitrary")]
mod arbitrary {
    use super::*;
    use ::arbitrary::{Arbitrary, Unstructured};
    use ipc_proto::Decode;
    use ipc_proto::wire::{Reader, WireError};

    /// Returns what `make` makes of each input: any first byte, 40 times `b'a'`, and 8 or 16 as a length at the end.
    fn made<T>(make: impl Fn(&[u8]) -> T) -> Vec<T> {
        let firsts = (0..=255).flat_map(|first| [8, 16].map(|last| (first, last)));
        firsts.map(|(first, last)| make(&[&[first][..], &[b'a'; 40], &[last]].concat())).collect()
    }

    #[test]
    fn every_kind_of_text_is_made() {
        let units = made(|bytes| {
            let text = Text::arbitrary(&mut Unstructured::new(bytes)).unwrap();
            text.non_null().map(|text| text.units().collect::<Vec<_>>())
        });
        let some = |unit: u16| units.iter().flatten().any(|units| units.contains(&unit));
        assert!(units.contains(&None), "null");
        assert!(some(0x61), "UTF-8");
        assert!(some(0x6161), "any code units");
    }

    #[test]
    fn an_array_has_as_many_values_as_the_bytes() {
        let arrays = made(|bytes| {
            let array = Array::<'_, u32>::arbitrary(&mut Unstructured::new(bytes)).unwrap();
            assert_eq!(array.iter().count(), array.len());
            array.iter().collect::<Vec<_>>()
        });
        assert!(arrays.iter().any(|values| values.len() > 1 && values[1] == 0x6161_6161));
    }

    /// A value whose `MIN_LEN` is 1 byte, but that reads no byte.
    #[derive(Debug, Clone, Copy)]
    struct Nothing;

    impl Decode<'_> for Nothing {
        const MIN_LEN: usize = 1;

        fn decode(_: &mut Reader<'_>) -> Result<Self, WireError> {
            Ok(Self)
        }

        fn inspect(
            _: &mut Reader<'_>,
            _: &ipc_proto::wire::Path<'_>,
            _: &mut dyn ipc_proto::wire::Visitor,
        ) -> Result<(), WireError> {
            Ok(())
        }
    }

    #[test]
    fn values_without_bytes_have_a_limit() {
        let counts =
            made(|bytes| Array::<'_, Nothing>::arbitrary(&mut Unstructured::new(bytes)).unwrap().len());
        assert!(counts.iter().all(|count| *count == 0));
    }
}

/// Returns the pairs of arguments, from UTF-8 and from UTF-16.
fn pairs(text: &str) -> Vec<(String, String)> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let of = |text: Text<'_>| -> Vec<_> {
        ProviderArguments::new(text).map(|(key, value)| (key.to_string(), value.to_string())).collect()
    };
    let found = of(text.into());
    assert_eq!(found, of(Text::from_utf16(&units)), "{text:?}");
    found
}

/// The pairs were compared with those that event sources of .NET 11 receive.
#[test]
fn arguments_of_providers() {
    for (text, expected) in [
        ("", &[][..]),
        ("a", &[]),
        ("a=1", &[("a", "1")]),
        ("a=", &[("a", "")]),
        ("=1", &[("", "1")]),
        ("a=1;", &[("a", "1")]),
        ("a=1;b", &[("a", "1")]),
        ("a=1;b=é", &[("a", "1"), ("b", "é")]),
        ("a=\"1;b=2\";c=3", &[("a", "1;b=2"), ("c", "3")]),
        ("\"a=b\"=1", &[("a=b", "1")]),
        ("a=x\";\"y", &[("a", "x;y")]),
        ("a=\"1;b=2", &[("a", "1;b=2")]),
        ("a=1=b;2", &[("a", "1"), ("b", "2")]),
        ("a=1;a=2", &[("a", "1"), ("a", "2")]),
        ("a=1\0;b=2", &[("a", "1")]),
        ("a=\0;b=2", &[("a", "")]),
        ("a=A/B:x\nC/D", &[("a", "A/B:x\nC/D")]),
    ] {
        let expected: Vec<_> = expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(pairs(text), expected, "{text:?}");
    }
    assert_eq!(ProviderArguments::new(Text::NULL).count(), 0);
}

#[test]
fn arguments_are_read_as_they_are_written() {
    let texts = ["", "a", "a=b", ";", "=", "a;b=c", " a ", "é\n", "A/B@Start:-Id=Name;Url"];
    for key in texts {
        for value in texts {
            let list = [(key, value), (value, key)];
            let text = ArgumentList::new(&list).unwrap().to_string();
            let expected: Vec<_> = list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            assert_eq!(pairs(&text), expected, "{text:?}");
        }
    }
    assert_eq!(ArgumentList::new(&[]).unwrap().to_string(), "");
    for bad in ["\"", "a\"b", "\0"] {
        assert_eq!(ArgumentList::new(&[(bad, "a")]), Err(ArgumentError));
        assert_eq!(ArgumentList::new(&[("a", bad)]), Err(ArgumentError));
    }
}

#[test]
fn names_of_platforms() {
    for &system in OperatingSystem::ALL {
        assert_eq!(OperatingSystem::of(system.name().into()), Some(system));
    }
    for &architecture in Architecture::ALL {
        assert_eq!(Architecture::of(architecture.name().into()), Some(architecture));
    }
    for other in [Text::NULL, "".into(), "linux".into(), "Arm64".into()] {
        assert_eq!((OperatingSystem::of(other), Architecture::of(other)), (None, None));
    }
}
