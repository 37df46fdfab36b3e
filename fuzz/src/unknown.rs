//! Generates objects and blocks of kinds that the parser does not know.
use arbitrary::{Result, Unstructured};
use nettrace::Version;

/// Generates an object of an unknown name, or a block of an unknown kind of V6. Its length is a multiple of 4, so that
/// a writer can continue after it: the bodies of its blocks are aligned.
pub(crate) fn unknown(u: &mut Unstructured<'_>, version: Version) -> Result<Vec<u8>> {
    let len = u.int_in_range(0..=40)?;
    let content = u.bytes(u.len().min(len))?;
    let mut object = Vec::new();
    if version == Version::V6 {
        let len = content.len().next_multiple_of(4);
        object.extend((u32::try_from(len).expect("a few") | 0x7f << 24).to_le_bytes());
        object.extend(content);
        object.resize(len + 4, 0);
        return Ok(object);
    }
    object.extend(b"\x05\x05\x01\x09\0\0\0\x09\0\0\0\x03\0\0\0New\x06");
    let mut open = 0;
    for byte in content {
        match byte & 15 {
            tag @ (2 | 3 | 7 | 10 | 12) => object.extend([tag, *byte, 5, 5, 1]),
            tag @ (4 | 5) => {
                object.extend([tag, tag, 1]);
                object.extend([*byte, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6]);
                open += 1;
            }
            6 if open > 0 => {
                object.push(6);
                open -= 1;
            }
            8 => object.extend([8, *byte]),
            9 => object.extend([9, *byte, 6]),
            11 => object.extend([11, 6, 5, 5, 1, *byte, 0, 0, 0]),
            tag @ (13 | 14) => {
                object.extend([tag, *byte, 0, 0, 0]);
                object.resize(object.len() + usize::from(*byte), 6);
            }
            _ => object.push(1),
        }
    }
    object.resize(object.len() + open, 6);
    while object.len() % 4 != 3 {
        object.push(1);
    }
    object.push(6);
    Ok(object)
}
