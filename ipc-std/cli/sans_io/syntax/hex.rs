//! Bytes as hexadecimal digits.
/// Returns two digits per byte, without separators.
pub fn hex(bytes: &[u8]) -> String {
    digits(bytes).collect()
}

/// Returns an iterator over two digits per byte.
pub fn digits(bytes: &[u8]) -> impl Iterator<Item = char> {
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles.filter_map(|nibble| char::from_digit(nibble.into(), 16))
}

/// Returns two digits per byte, separated by blanks.
pub fn spaced(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// Parses pairs of digits. Blanks, `:`, `|`, `,` and `0x` can separate them; a comment begins with `#` and ends with
/// its line.
pub fn parse(text: &str) -> Result<Vec<u8>, String> {
    let separates = |c: char| c.is_whitespace() || matches!(c, ':' | '|' | ',');
    let lines = text.lines().map(|line| line.split_once('#').map_or(line, |(bytes, _)| bytes));
    let mut bytes = Vec::new();
    for word in lines.flat_map(|line| line.split(separates)).filter(|word| !word.is_empty()) {
        let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
        let digits = digits.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()));
        let digits = digits.collect::<Option<Vec<u8>>>().filter(|digits| digits.len() % 2 == 0);
        let shown: String = word.chars().take(40).collect();
        let digits = digits.ok_or_else(|| format!("{shown:?} is not hexadecimal, two digits a byte"))?;
        bytes.extend(
            digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| (byte << 4) | digit)),
        );
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form() {
        for text in
            ["0a0B0c", "0a 0b 0c", "0x0a,0x0b\n0x0c", "0a:0b:0c", "0a 0b | 0c", "# c\n0a0b # d\n\n 0c"]
        {
            assert_eq!(parse(text), Ok(vec![10, 11, 12]), "{text}");
        }
        assert_eq!(parse(" # nothing"), Ok(vec![]));
        for text in ["0", "0a 1", "0g", "+1", "0x0", "é"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!((hex(&[1, 171]), spaced(&[1, 171])), ("01ab".to_owned(), "01 ab".to_owned()));
    }
}
