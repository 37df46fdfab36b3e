//! [`ProviderArguments`], the arguments of a provider as pairs; [`ArgumentList`], pairs as the arguments of a provider.
use core::fmt::{self, Write};

use crate::Text;
use crate::sentences::sentences;
use crate::wire::Units;

/// The arguments of a provider as pairs of a key and a value, as a runtime reads them.
///
/// ```text
/// arguments := key "=" value (";" key "=" value)*
/// ```
///
/// * In double quotes, `=` and `;` are characters like any other. Quotes can begin and end anywhere, and are left out.
/// * `=` and `;` are the same separator: keys and values alternate. A key without a value is left out.
/// * The text ends at its first NUL. Of two pairs with the same key, runtimes take the last.
///
/// An event source defines its keys, for example `EventCounterIntervalSec=1` for counters, and
/// `FilterAndPayloadSpecs="…"` of `Microsoft-Diagnostics-DiagnosticSource`, whose specifications contain `;` and `=`.
///
/// ```
/// use ipc_proto::types::{ArgumentList, ProviderArguments};
///
/// let text = "EventCounterIntervalSec=1;FilterAndPayloadSpecs=\"A/B@Start:-Id=Name;Url\nC/D\"";
/// let pairs: Vec<_> = ProviderArguments::new(text.into()).collect();
/// assert!(pairs[0].0 == "EventCounterIntervalSec" && pairs[0].1 == "1");
/// assert_eq!(pairs[1].1.to_string(), "A/B@Start:-Id=Name;Url\nC/D");
///
/// let pairs = [("EventCounterIntervalSec", "1"), ("FilterAndPayloadSpecs", "A/B@Start:-Id=Name;Url\nC/D")];
/// assert_eq!(ArgumentList::new(&pairs)?.to_string(), text);
/// # Ok::<(), ipc_proto::types::ArgumentError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ProviderArguments<'a> {
    units: Units<'a>,
}

impl<'a> ProviderArguments<'a> {
    /// Creates an iterator over the pairs of [`Provider::arguments`](super::types::Provider).
    #[must_use]
    pub fn new(arguments: Text<'a>) -> Self {
        Self { units: arguments.units() }
    }

    /// Returns the text up to the next separator, and whether there is a separator.
    fn next_text(&mut self) -> (ArgumentText<'a>, bool) {
        let mut text = ArgumentText { units: self.units.clone(), len: 0 };
        let mut is_quoted = false;
        while let Some(unit) = self.units.next() {
            match u8::try_from(unit) {
                Ok(0) => {
                    self.units = Text::NULL.units();
                    return (text, false);
                }
                Ok(QUOTE) => is_quoted = !is_quoted,
                Ok(b'=' | b';') if !is_quoted => return (text, true),
                _ => {}
            }
            text.len = text.len.saturating_add(1);
        }
        (text, false)
    }
}

impl<'a> Iterator for ProviderArguments<'a> {
    type Item = (ArgumentText<'a>, ArgumentText<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, has_value) = self.next_text();
        has_value.then(|| (key, self.next_text().0))
    }
}

const QUOTE: u8 = b'"';

/// A key or a value of [`ProviderArguments`], without its quotes. Its `Display` writes the text, with U+FFFD for each lone
/// surrogate.
#[derive(Debug, Clone)]
pub struct ArgumentText<'a> {
    /// The units from the beginning of the text on.
    units: Units<'a>,
    /// The number of units, with the quotes.
    len: usize,
}

impl<'a> ArgumentText<'a> {
    /// Returns an iterator over the characters, with U+FFFD for each lone surrogate.
    pub fn chars(&self) -> impl Iterator<Item = char> + use<'a> {
        let units = self.units.clone().take(self.len).filter(|unit| *unit != QUOTE.into());
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

impl PartialEq<str> for ArgumentText<'_> {
    fn eq(&self, other: &str) -> bool {
        self.chars().eq(other.chars())
    }
}
impl PartialEq<&str> for ArgumentText<'_> {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}
impl fmt::Display for ArgumentText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|c| f.write_char(c))
    }
}

/// Pairs of a key and a value, whose `Display` writes the arguments of a provider: [`ProviderArguments`] reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentList<'a> {
    pairs: &'a [(&'a str, &'a str)],
}

sentences! {
    /// The arguments of a provider cannot contain a text.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ArgumentError = "the arguments of a provider cannot contain a double quote or a NUL";
}
impl core::error::Error for ArgumentError {}

impl<'a> ArgumentList<'a> {
    /// Creates a list of these pairs.
    ///
    /// # Errors
    /// If a key or a value contains a double quote or a NUL: runtimes leave out quotes, and read up to the first NUL.
    pub fn new(pairs: &'a [(&'a str, &'a str)]) -> Result<Self, ArgumentError> {
        let is_expressible = |text: &str| !text.bytes().any(|byte| matches!(byte, QUOTE | 0));
        let all = pairs.iter().all(|(key, value)| is_expressible(key) && is_expressible(value));
        if all { Ok(Self { pairs }) } else { Err(ArgumentError) }
    }
}

/// Writes a text, in quotes if it contains a separator.
fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if text.bytes().any(|byte| matches!(byte, b'=' | b';')) {
        f.write_char('"')?;
        f.write_str(text)?;
        return f.write_char('"');
    }
    f.write_str(text)
}

impl fmt::Display for ArgumentList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (key, value) in self.pairs {
            f.write_str(core::mem::replace(&mut separator, ";"))?;
            write_text(key, f)?;
            f.write_str("=")?;
            write_text(value, f)?;
        }
        Ok(())
    }
}
