//! The property of the earlier protocols and of the names of sockets and pipes.
use core::fmt::Display;
use core::str::FromStr;

use arbitrary::Unstructured;
use ipc_proto::legacy::{
    self, DraftCollectTracing, DraftErrorCode, Legacy, OldMessageType, OldRequest, recognise,
};
use ipc_proto::wire::decode;
use ipc_proto::{
    Array, Code, Command, Encode, Guid, HResult, Message, Parsed, PipeName, RouterSocketName, SocketName,
    Text, encode_to_vec,
};

use crate::message::{encoded, value};

/// Checks that `recognise` accepts exactly the messages of the earlier protocols, compared with a simple reader.
///
/// A text parses as a socket or pipe name (draft or current), or a GUID exactly if it has that form.
pub fn legacy(bytes: &[u8]) {
    recognised(bytes);
    names(&String::from_utf8_lossy(bytes));
    let mut u = Unstructured::new(bytes);
    let _ = made_up(&mut u);
}

fn recognised(bytes: &[u8]) {
    let whole = match Message::parse(bytes) {
        Ok(Parsed::Complete { value, used }) if used == bytes.len() => Some(value),
        Ok(_) => return assert_eq!(recognise(bytes), None),
        Err(_) => None,
    };
    let word = |at: usize| {
        bytes.get(at..at + 4).map_or(0, |word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    };
    match recognise(bytes) {
        Some(Legacy::Old(old)) => {
            assert!(whole.is_none() && (1024..=1026).contains(&word(0)) && word(4) != 0);
            assert_eq!((old.message_type, old.process_id), (OldMessageType(word(0)), word(4)));
            assert_eq!(old.rest, &bytes[8..]);
        }
        Some(Legacy::Error(code)) => {
            assert_eq!(whole, Some(Message { code: Code::ERROR, payload: &code.0.to_le_bytes() }));
            assert!(code.name().is_some() && HResult::from(code).name().is_some());
        }
        Some(Legacy::CollectTracing(start)) => {
            let message = whole.expect("a message");
            assert_eq!(message.code, DraftCollectTracing::CODE);
            assert_eq!(encoded(&start), message.payload);
        }
        Some(other) => panic!("{other:?} is not in this list"),
        None => match whole {
            Some(Message { code: DraftCollectTracing::CODE, payload }) => {
                let today =
                    decode::<ipc_proto::CollectTracing<'_>>(payload).ok().map(|today| today.encoded_len());
                let then = decode::<DraftCollectTracing<'_>>(payload).ok().map(|then| then.encoded_len());
                assert!(
                    then != Some(payload.len()) || today == Some(payload.len()),
                    "a request of the draft is not recognised"
                );
                value::<DraftCollectTracing<'_>>(payload, &mut Vec::new());
            }
            Some(Message { code: Code::ERROR, payload }) => {
                assert!(
                    payload.len() != 4 || !(1..=4).contains(&word(20)),
                    "an error of the draft is not recognised"
                );
            }
            Some(_) => {}
            None => assert!(bytes.len() < 8 || word(4) == 0 || !(1024..=1026).contains(&word(0))),
        },
    }
    value::<DraftCollectTracing<'_>>(bytes, &mut Vec::new());
    value::<legacy::DraftProvider<'_>>(bytes, &mut Vec::new());
    value::<OldRequest<'_>>(bytes, &mut Vec::new());
    value::<DraftErrorCode>(bytes, &mut Vec::new());
}

fn made_up(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    names(&text(u)?);
    let providers: Vec<legacy::DraftProvider<'_>> = u.arbitrary()?;
    let start = DraftCollectTracing {
        circular_buffer_mb: u.arbitrary()?,
        output_path: u.arbitrary()?,
        providers: Array::from(&providers[..]),
    };
    if let Ok(message) = encode_to_vec(DraftCollectTracing::CODE, &start) {
        recognised(&message);
        let read: DraftCollectTracing<'_> = decode(&message[20..]).expect("it was written a moment ago");
        assert_eq!(
            (read.circular_buffer_mb, read.output_path),
            (start.circular_buffer_mb, start.output_path)
        );
        // Absent filter data is null unless the provider is the last one.
        let last = providers.len().wrapping_sub(1);
        let written = providers.iter().enumerate().map(|(at, provider)| legacy::DraftProvider {
            filter_data: if at == last {
                provider.filter_data
            } else {
                provider.filter_data.or(Some(Text::NULL))
            },
            ..*provider
        });
        assert!(read.providers.iter().eq(written), "the providers that were read differ from those written");
    }
    let mut old: OldRequest<'_> = u.arbitrary()?;
    if u.arbitrary()? {
        // Message types that are valid, and those next to them.
        old.message_type = OldMessageType(u.int_in_range(1023..=1027)?);
        old.process_id = u.int_in_range(0..=1)?;
    }
    let buf = encoded(&old);
    assert_eq!(decode(&buf), Ok(old));
    recognised(&buf);
    for code in [u.arbitrary()?, DraftErrorCode(u.int_in_range(0..=5)?)] {
        recognised(&encode_to_vec(Code::ERROR, &code).expect("24 bytes"));
    }
    Ok(())
}

/// Checks that a text is at most one of these names, and that the name has the parts of the text.
fn names(text: &str) {
    let id = |start: &str| numbers(text.strip_prefix(start)?, "0");
    let id_and_key = |start: &str| {
        let (id, key) = text.strip_prefix(start)?.strip_suffix("-socket")?.split_once('-')?;
        numbers(id, key)
    };
    let names = [
        name(text, id_and_key("dotnet-diagnostic-"), |(process_id, disambiguation_key)| SocketName {
            process_id,
            disambiguation_key,
        }),
        name(text, id_and_key("dotnet-diagnostic-dsrouter-"), |(process_id, start_seconds)| {
            RouterSocketName { process_id, start_seconds }
        }),
        name(text, id_and_key("dotnetcore-diagnostic-"), |(process_id, disambiguation_key)| {
            legacy::DraftSocketName(SocketName { process_id, disambiguation_key })
        }),
        name(text, id("dotnet-diagnostic-"), |(process_id, _)| PipeName { process_id }),
        name(text, id("dotnetcore-diagnostic-"), |(process_id, _)| {
            legacy::DraftPipeName(PipeName { process_id })
        }),
    ];
    assert!(names.iter().filter(|is| **is).count() <= 1, "{text:?} is more than one name");

    let bare = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let groups: Vec<&str> = bare.split('-').collect();
    let hex = groups.iter().all(|group| group.chars().all(|c| c.is_ascii_hexdigit()));
    let is_one = hex && groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]);
    let guid: Result<Guid, _> = text.parse();
    assert_eq!(guid.is_ok(), is_one);
    if let Ok(guid) = guid {
        assert_eq!(guid.to_string(), bare.to_ascii_lowercase());
        let first = u32::from_str_radix(groups[0], 16).map(u32::to_le_bytes);
        assert_eq!(first.as_ref().map(|first| &first[..]), Ok(&guid.0[..4]));
    }
}

/// Returns whether the text is a name, which requires `parts`.
fn name<N: FromStr + Display + PartialEq + core::fmt::Debug, P>(
    text: &str,
    parts: Option<P>,
    of: fn(P) -> N,
) -> bool {
    let name = text.parse::<N>().ok();
    assert_eq!(name, parts.map(of), "{text:?}");
    if let Some(name) = &name {
        assert_eq!(name.to_string(), text);
    }
    name.is_some()
}

/// Parses two numbers in their canonical form.
fn numbers(id: &str, key: &str) -> Option<(u32, u64)> {
    let numbers: (u32, u64) = (id.parse().ok()?, key.parse().ok()?);
    (numbers.0.to_string() == id && numbers.1.to_string() == key).then_some(numbers)
}

/// Generates a text from parts of names and arbitrary text.
fn text(u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    const WORDS: &str = "dotnet-diagnostic-|dotnetcore-diagnostic-|dotnet-diagnostic-dsrouter-|-socket|-|0|\
        4294967295|4294967296|18446744073709551615|18446744073709551616|+1|dead|BEEF|{|}|\
        123e4567-e89b-12d3-a456-426614174000";
    let words: Vec<&str> = WORDS.split('|').collect();
    let mut text = String::new();
    for _ in 0..u.int_in_range(0..=10)? {
        match u.choose_index(words.len() + 2)? {
            index if index < words.len() => text.push_str(words[index]),
            16 => text.push_str(&u.arbitrary::<u64>()?.to_string()),
            _ => text.push_str(u.arbitrary()?),
        }
    }
    Ok(text)
}
