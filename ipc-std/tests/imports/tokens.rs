//! Cuts Rust source text into the tokens that matter for imports: names and punctuation.

/// A name or keyword, or one character of punctuation. Comments and literals are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Name(String),
    Punctuation(char),
}

impl Token {
    pub(crate) fn is(&self, text: &str) -> bool {
        match self {
            Self::Name(name) => name == text,
            Self::Punctuation(c) => text.chars().eq([*c]),
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Punctuation(_) => None,
        }
    }
}

pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = chars.get(at).copied() {
        let next = chars.get(at + 1).copied();
        at = match c {
            '/' if next == Some('/') => end_of_line(&chars, at),
            '/' if next == Some('*') => end_of_block_comment(&chars, at),
            '"' => end_of_string(&chars, at + 1),
            '\'' => end_of_character(&chars, at),
            c if c.is_alphabetic() || c == '_' => {
                let end = end_of_name(&chars, at);
                let name: String = chars[at..end].iter().collect();
                match (name.as_str(), chars.get(end)) {
                    ("r" | "br" | "cr", Some('"' | '#')) if raw_string(&chars, end).is_some() => {
                        raw_string(&chars, end).unwrap()
                    }
                    ("b" | "c", Some('"')) => end_of_string(&chars, end + 1),
                    ("b", Some('\'')) => end_of_character(&chars, end),
                    _ => {
                        tokens.push(Token::Name(name));
                        end
                    }
                }
            }
            c if c.is_ascii_digit() => end_of_name(&chars, at),
            c => {
                if !c.is_whitespace() {
                    tokens.push(Token::Punctuation(c));
                }
                at + 1
            }
        };
    }
    tokens
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |n| at + n)
}

fn end_of_block_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) if depth == 1 => return at + 2,
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    at
}

fn end_of_string(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// Returns the end of a character literal; of a lifetime, the position of its name.
fn end_of_character(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => {
            chars[at + 3..].iter().position(|c| *c == '\'').map_or(chars.len(), |n| at + 4 + n)
        }
        (Some(_), Some('\'')) => at + 3,
        // The name of a lifetime is not the name of an item.
        _ => end_of_name(chars, at + 1),
    }
}

fn end_of_name(chars: &[char], at: usize) -> usize {
    let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
    chars[at..].iter().position(|c| !is_part(c)).map_or(chars.len(), |n| at + n)
}

/// Returns the end of a raw string whose `#` or `"` is at `at`; `None` for a raw name.
fn raw_string(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
    (chars.get(at + hashes) == Some(&'"')).then_some(())?;
    let start = at + hashes + 1;
    let is_end = |n: &usize| {
        chars[*n] == '"' && chars[n + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes
    };
    (start..chars.len()).find(is_end).map(|n| n + 1 + hashes)
}

#[test]
fn comments_and_literals_are_no_tokens() {
    let text = r####"/* a /* b */ c */ use x; // y
        let c = '"'; let d = '\''; let s = "z\" /*"; let r = r#"q" "#; fn f<'a>() { 1_u8; b'x'; r#type }"####;
    let names: Vec<_> = tokens(text).iter().filter_map(|token| token.name().map(str::to_owned)).collect();
    let expected = ["use", "x", "let", "c", "let", "d", "let", "s", "let", "r", "fn", "f", "r", "type"];
    assert_eq!(names, expected);
}
