//! `--only` and `--until`: the events to show or to keep, and those to stop at.
use core::fmt;

use nettrace::{self, Metadata};

use crate::unsigned::unsigned;

/// The events of a provider, or one kind of them: `PROVIDER[/ID]`.
#[derive(Debug, Clone)]
pub struct OnlyArg {
    provider: String,
    event_id: Option<u32>,
}

impl OnlyArg {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (provider, event_id) = match text.split_once('/') {
            None => (text, None),
            Some((provider, id)) => {
                let number = unsigned(id).and_then(|id| id.parse().ok());
                (provider, Some(number.ok_or_else(|| format!("the ID {id:?} after the / is not a number"))?))
            }
        };
        if provider.is_empty() {
            return Err("the name of the provider is missing".to_owned());
        }
        Ok(Self { provider: provider.to_owned(), event_id })
    }

    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Returns the filter as the library has it.
    pub fn as_filter(&self) -> nettrace::EventSelector<'_> {
        nettrace::EventSelector { provider: &self.provider, event_id: self.event_id }
    }

    /// Returns whether the events of this description are among them.
    pub fn includes(&self, metadata: &Metadata<'_>) -> bool {
        self.as_filter().keeps(metadata)
    }
}

/// `PROVIDER` or `PROVIDER/ID`.
impl fmt::Display for OnlyArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.provider)?;
        self.event_id.map_or(Ok(()), |id| write!(f, "/{id}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_and_ids() {
        for (text, provider, event_id) in [("A", "A", None), ("A/7", "A", Some(7)), ("A:B/0", "A:B", Some(0))]
        {
            let only = OnlyArg::parse(text).unwrap();
            assert_eq!((only.provider.as_str(), only.event_id), (provider, event_id), "{text}");
            assert_eq!(only.to_string(), text);
        }
        for text in ["", "/1", "A/", "A/x", "A/+1", "A/-1", "A/1/2", "A/4294967296"] {
            assert!(OnlyArg::parse(text).is_err(), "{text}");
        }
    }
}
