//! `SeriesFilter`: the text form of series, `PROVIDER/NAME[TAG=VALUE,...]`, and which samples it contains.
use core::str::FromStr;

use nettrace_analysis::counters::{OwnedSample, Selection};

use super::series_details::{all_tags, details};

/// A selection of series: all series of a provider, of one of its counters, or of a counter with some tags.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SeriesFilter {
    pub(crate) selection: Selection,
    /// The tags, as name and value, that a series must have.
    tags: Vec<(String, String)>,
    text: String,
}

/// The text after a term or a tag, or an error that states the right form.
type Rest<'a, T> = Result<(T, &'a str), String>;

impl SeriesFilter {
    /// Splits off series at the start of a text, which end before one of the `ends` outside of brackets.
    pub(crate) fn split<'a>(text: &'a str, ends: &[char]) -> Rest<'a, Self> {
        let stop = text.find(|c| c == '[' || ends.contains(&c)).unwrap_or(text.len());
        let (name, mut rest) = text.split_at_checked(stop).unwrap_or((text, ""));
        let mut tags = Vec::new();
        if let Some(mut inner) = rest.strip_prefix('[') {
            let (list, _) = inner.split_once(']').unwrap_or((inner, ""));
            if !name.contains('/') && !list.is_empty() && !list.contains('=') {
                let counters = list.split(',').map(|counter| format!("{}/{}", name.trim(), counter.trim()));
                let counters = counters.collect::<Vec<_>>().join(" ");
                return Err(format!("this is the form of dotnet-counters; write {counters}"));
            }
            loop {
                let (tag, after) = split_tag(inner)?;
                tags.push(tag);
                match after.strip_prefix(',') {
                    Some(after) => inner = after,
                    None => {
                        rest = after.strip_prefix(']').ok_or("a `]` is missing after the tags")?;
                        break;
                    }
                }
            }
        }
        let len = text.len().saturating_sub(rest.len());
        let whole = text.get(..len).unwrap_or(text).trim().to_owned();
        let selection = name.trim().parse::<Selection>().map_err(|e| e.to_string())?;
        if !tags.is_empty() && selection.name.is_none() {
            return Err("tags require the name of a counter before them: PROVIDER/NAME[TAG=VALUE]".to_owned());
        }
        Ok((Self { selection, tags, text: whole }, rest))
    }

    /// Returns whether a sample is of these series.
    pub(crate) fn contains(&self, sample: &OwnedSample) -> bool {
        self.contains_counter(sample) && self.tags.iter().all(|tag| has_tag(sample, tag))
    }

    /// Returns whether a sample is of the counter, with any tags.
    pub(crate) fn contains_counter(&self, sample: &OwnedSample) -> bool {
        self.selection.contains(sample.system, (&*sample.provider).into(), (&*sample.name).into())
    }

    /// Returns whether the series are all those of a counter or of a provider.
    pub(crate) fn has_no_tags(&self) -> bool {
        self.tags.is_empty()
    }
}

/// Returns whether a series has a tag of its own, of its instrument or of its meter, or else a detail of that name.
fn has_tag(sample: &OwnedSample, (name, value): &(String, String)) -> bool {
    if all_tags(sample).any(|(known, other)| known == **name && other == **value) {
        return true;
    }
    details(sample).iter().any(|(known, other)| known == name && other == value)
}

/// Splits off `TAG=VALUE`. Each of the two can be in quotes, in which `\` precedes a quote or another `\`.
fn split_tag(text: &str) -> Rest<'_, (String, String)> {
    let (name, rest) = split_text(text, &['=', ',', ']'])?;
    let Some(rest) = rest.strip_prefix('=') else {
        return Err(format!("a tag is TAG=VALUE, not {text:?}"));
    };
    let (value, rest) = split_text(rest, &[',', ']'])?;
    Ok(((name, value), rest))
}

/// Splits off a text: one in quotes, or else up to one of the `ends`.
fn split_text<'a>(text: &'a str, ends: &[char]) -> Rest<'a, String> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (mut unquoted, mut chars) = (String::new(), quoted.chars());
        while let Some(c) = chars.next() {
            match c {
                '"' => {
                    let rest = chars.as_str();
                    if !rest.starts_with(ends) {
                        return Err(format!("`,` or `]` must follow a quoted text, not {rest:?}"));
                    }
                    return Ok((unquoted, rest));
                }
                '\\' => unquoted.extend(chars.next()),
                c => unquoted.push(c),
            }
        }
        return Err("a quote is missing after a quoted text".to_owned());
    }
    let end = text.find(ends).ok_or("a `]` is missing after the tags")?;
    let (plain, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    Ok((plain.to_owned(), rest))
}

impl FromStr for SeriesFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match Self::split(text, &[])? {
            (series, "") => Ok(series),
            (_, rest) => Err(format!("nothing can follow the tags, not {rest:?}")),
        }
    }
}

impl core::fmt::Display for SeriesFilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.text)
    }
}
