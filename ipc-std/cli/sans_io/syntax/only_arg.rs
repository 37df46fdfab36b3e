//! `--only` and `--until`: the events to show or to keep, and those to stop at.
use core::fmt;

use nettrace::{self, Metadata};

use super::unsigned::unsigned;

/// The events of a provider, or one kind of them: `PROVIDER[/EVENT]`, with the ID or the name of the event.
#[derive(Debug, Clone)]
pub struct OnlyArg {
    provider: String,
    event_id: Option<u32>,
    event_name: Option<String>,
}

impl OnlyArg {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (provider, event) = match text.split_once('/') {
            None => (text, None),
            Some((provider, event)) => (provider, Some(event)),
        };
        if provider.is_empty() {
            return Err("the name of the provider is missing".to_owned());
        }
        // A name begins with a letter in every language.
        let (event_id, event_name) = match event {
            Some(name) if name.starts_with(char::is_alphabetic) => (None, Some(name.to_owned())),
            Some(id) => {
                let number = unsigned(id).and_then(|id| id.parse().ok());
                (Some(number.ok_or_else(|| format!("{id:?} after the / is neither an ID nor a name"))?), None)
            }
            None => (None, None),
        };
        Ok(Self { provider: provider.to_owned(), event_id, event_name })
    }

    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Returns the filter as the library has it.
    pub fn as_filter(&self) -> nettrace::EventSelector<'_> {
        let (provider, event_name) = (&self.provider, self.event_name.as_deref());
        nettrace::EventSelector { provider, event_id: self.event_id, event_name }
    }

    /// Returns whether the events of this description are among them.
    pub fn includes(&self, metadata: &Metadata<'_>) -> bool {
        self.as_filter().keeps(metadata)
    }
}

/// `PROVIDER`, `PROVIDER/ID` or `PROVIDER/NAME`.
impl fmt::Display for OnlyArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.provider)?;
        if let Some(id) = self.event_id {
            write!(f, "/{id}")?;
        }
        self.event_name.as_ref().map_or(Ok(()), |name| write!(f, "/{name}"))
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
        let named = OnlyArg::parse("A/GC/Start").unwrap();
        assert_eq!((named.event_id, named.event_name.as_deref()), (None, Some("GC/Start")));
        assert_eq!(named.to_string(), "A/GC/Start");
        let metadata = Metadata::new(1, "a", 7, "gc/start");
        assert!(named.includes(&metadata) && !OnlyArg::parse("A/GC").unwrap().includes(&metadata));
        let metadata = Metadata::new(1, "Microsoft-Windows-DotNETRuntime", 80, "");
        assert!(
            OnlyArg::parse("Microsoft-Windows-DotNETRuntime/ExceptionThrown").unwrap().includes(&metadata)
        );
        for text in ["", "/1", "/x", "A/", "A/_", "A/+1", "A/-1", "A/1/2", "A/4294967296"] {
            assert!(OnlyArg::parse(text).is_err(), "{text}");
        }
    }
}
