//! Text that lines of events have as it is: ASCII without characters that JSON or a terminal needs escaped.
use nettrace::Str;

/// Appends a text if all its characters are plain. Otherwise, nothing changes.
pub(crate) fn append(text: Str<'_>, out: &mut Vec<u8>) -> bool {
    match text {
        Str::Utf8(bytes) => {
            let is_plain = is_plain(bytes);
            if is_plain {
                out.extend_from_slice(bytes);
            }
            is_plain
        }
        Str::Utf16(bytes) => {
            let start = out.len();
            out.resize(start.saturating_add(bytes.len() / 2), 0);
            let added = out.get_mut(start..).unwrap_or_default();
            // Code units beyond ASCII become NULs, which are not plain.
            for (byte, unit) in added.iter_mut().zip(bytes.chunks_exact(2)) {
                *byte = if let [low, 0] = unit { *low } else { 0 };
            }
            let is_plain = out.get(start..).is_some_and(is_plain);
            if !is_plain {
                out.truncate(start);
            }
            is_plain
        }
    }
}

/// Returns whether all characters are one byte that needs no escape.
fn is_plain(text: &[u8]) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') & (*byte != b'"') & (*byte != b'\\');
    // Without a branch for each byte, a chunk takes a few vector instructions.
    let mut chunks = text.chunks_exact(32);
    chunks.by_ref().all(|chunk| chunk.iter().fold(true, |all, byte| all & is_plain(byte)))
        && chunks.remainder().iter().fold(true, |all, byte| all & is_plain(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_appended_and_other_text_is_not() {
        let long = "plain ".repeat(20);
        for text in ["", "a", "System.Runtime/~ ", &long] {
            for (before, after) in [("", ""), ("{", "}"), (long.as_str(), long.as_str())] {
                let text = format!("{before}{text}{after}");
                let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
                for encoded in [Str::from(&*text), Str::Utf16(&utf16)] {
                    let mut out = b"0".to_vec();
                    assert!(append(encoded, &mut out));
                    assert_eq!(out, format!("0{text}").as_bytes());
                }
                for other in ['"', '\\', '\n', '\0', '\u{7f}', '\u{80}', 'é', 'ā', '\u{2020}', '😀'] {
                    let text = format!("{before}{other}{after}");
                    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
                    for encoded in [Str::from(&*text), Str::Utf16(&utf16)] {
                        let mut out = b"0".to_vec();
                        assert!(!append(encoded, &mut out), "{text}");
                        assert_eq!(out, b"0");
                    }
                }
            }
        }
        // An incomplete last code unit is ignored.
        let mut out = Vec::new();
        assert!(append(Str::Utf16(b"a\0b"), &mut out));
        assert_eq!(out, b"a");
    }
}
