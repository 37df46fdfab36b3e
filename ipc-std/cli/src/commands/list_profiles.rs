//! `list-profiles`: the profiles and keyword names of `trace`.
use std::io::Write;

use clap::ValueEnum;
use dotnet_ipc_sans_io::syntax::keywords::CLR_KEYWORDS;
use dotnet_ipc_sans_io::syntax::provider::ProviderSpec;
use serde_json::{Map, Value};

use serde::Serialize;

use crate::output::stdout::to_stdout;
use crate::recording::trace_profile::TraceProfile;
use crate::run::{Failure, Globals};
use crate::text::printable::{hexadecimal, json_line};

/// List the profiles for `trace --profile`, and the keywords for --clr-events
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("list_profiles.txt"))]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, globals: &Globals) -> Result<(), Failure> {
    to_stdout(|out| if globals.json { write_json(out) } else { write_text(out) })
}

/// Returns the name and the description of a profile.
fn names(profile: TraceProfile) -> (String, String) {
    let value = profile.to_possible_value();
    let name = value.as_ref().map_or_else(String::new, |value| value.get_name().to_owned());
    let help =
        value.as_ref().and_then(|value| value.get_help()).map_or_else(String::new, ToString::to_string);
    (name, help)
}

/// A profile as JSON.
#[derive(Serialize)]
struct ProfileRow<'p> {
    profile: &'p str,
    description: &'p str,
    providers: Vec<ProviderRow<'p>>,
}

#[derive(Serialize)]
struct ProviderRow<'p> {
    name: &'p str,
    keywords: String,
    level: u32,
    arguments: &'p str,
}

#[derive(Serialize)]
struct KeywordsRow {
    clr_keywords: Map<String, Value>,
}

fn write_json(out: &mut dyn Write) -> std::io::Result<()> {
    for profile in TraceProfile::value_variants() {
        let (name, description) = names(*profile);
        let providers = profile.providers();
        let providers = providers.iter().map(|ProviderSpec { name, keywords, level, arguments }| {
            ProviderRow { name, keywords: hexadecimal(*keywords), level: level.0, arguments }
        });
        let providers = providers.collect();
        writeln!(out, "{}", json_line(&ProfileRow { profile: &name, description: &description, providers }))?;
    }
    let clr_keywords =
        CLR_KEYWORDS.iter().map(|(name, value)| ((*name).to_owned(), hexadecimal(*value).into()));
    let clr_keywords = clr_keywords.collect();
    writeln!(out, "{}", json_line(&KeywordsRow { clr_keywords }))
}

fn write_text(out: &mut dyn Write) -> std::io::Result<()> {
    for profile in TraceProfile::value_variants() {
        let (name, description) = names(*profile);
        writeln!(out, "{name}\n    {description}")?;
        for provider in profile.providers() {
            writeln!(out, "    {}:{:#x}:{}", provider.name, provider.keywords, provider.level.0)?;
        }
    }
    writeln!(out, "\nKeywords of Microsoft-Windows-DotNETRuntime for --clr-events and --provider:")?;
    for (name, value) in CLR_KEYWORDS {
        writeln!(out, "  {value:>#14x}  {name}")?;
    }
    Ok(())
}
