//! Tags of a series, from texts of both encodings.
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
