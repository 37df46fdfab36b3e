//! Tags of a series, from texts of both encodings.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, reason = "tests")]

use nettrace::Str;
use nettrace_analysis::counters::{System, escaped_tags, tags};

fn both(text: &str) -> Vec<(String, String)> {
    let read = |text: Str<'_>| -> Vec<(String, String)> {
        tags(System::Meter, text).map(|(name, value)| (name.to_string(), value.to_string())).collect()
    };
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let found = read(text.into());
    assert_eq!(found, read(Str::Utf16(&wide)), "{text}");
    found
}

#[test]
fn readings() {
    let cases: [(&str, &[(&str, &str)]); 9] = [
        ("", &[]),
        ("a=b", &[("a", "b")]),
        ("a=b,c=d", &[("a", "b"), ("c", "d")]),
        ("a=b,c", &[("a", "b,c")]),
        ("a=b,c,d=e=f", &[("a", "b,c"), ("d", "e=f")]),
        ("a", &[("a", "")]),
        ("a=,b=", &[("a", ""), ("b", "")]),
        ("x,y=z", &[("x,y", "z")]),
        ("ä😀=😀,ö=é", &[("ä😀", "😀"), ("ö", "é")]),
    ];
    for (text, expected) in cases {
        let found = both(text);
        let found: Vec<_> = found.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(found, expected, "{text}");
    }
    let metadata: Vec<_> = tags(System::EventCounter, "key:value".into()).collect();
    assert_eq!(metadata, [("key".into(), "value".into())]);
}

fn both_escaped(text: &str) -> Vec<(String, String)> {
    let read = |text: Str<'_>| -> Vec<(String, String)> {
        escaped_tags(text).map(|(name, value)| (name.to_string(), value.to_string())).collect()
    };
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let found = read(text.into());
    assert_eq!(found, read(Str::Utf16(&wide)), "{text}");
    found
}

#[test]
fn escapes() {
    let cases: [(&str, &[(&str, &str)]); 8] = [
        ("", &[]),
        (r"a=b\,c", &[("a", "b,c")]),
        (r"a=b,c=d\=e", &[("a", "b"), ("c", "d=e")]),
        (r"a\=b=c", &[("a=b", "c")]),
        (r"a\\=\\,b=\\\,", &[("a\\", "\\"), ("b", "\\,")]),
        (r"a=b\", &[("a", "b\\")]),
        (r"a=,b", &[("a", ""), ("b", "")]),
        (r"ä😀=😀\,,ö=é", &[("ä😀", "😀,"), ("ö", "é")]),
    ];
    for (text, expected) in cases {
        let found = both_escaped(text);
        let found: Vec<_> = found.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(found, expected, "{text}");
    }
}

/// A text with a hundred thousand tags has 1,024 of them, and nothing of it is lost. The search for a tag begins at the
/// end of the tag before it.
#[test]
fn many_tags() {
    const TAGS: usize = 100_000;
    const MAX: usize = 1_024;
    for tag in ["a=,", "ä=😀,", "=b,", "a=b,,,"] {
        let text = tag.repeat(TAGS);
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for text in [Str::from(&*text), Str::Utf16(&wide)] {
            let (mut count, mut last) = (0, 0);
            tags(System::Meter, text).for_each(|(_, value)| (count, last) = (count + 1, value.len()));
            let expected = tag.len() * (TAGS - MAX);
            assert!(count == MAX && last >= expected, "{tag}: {count}, {last} of {expected}");
            assert_eq!(escaped_tags(text).count(), MAX, "{tag}");
        }
    }
    let text = r"a\=b\,=\\,".repeat(2 * MAX);
    let (name, value) = escaped_tags((&*text).into()).last().unwrap();
    assert_eq!((&*name, value.matches("a=b,=").count()), ("a=b,", MAX));
}
