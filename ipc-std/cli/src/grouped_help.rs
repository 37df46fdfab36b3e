//! The help of the tool, whose commands are in groups. Clap has no headings for commands.
use core::fmt::Write as _;

use clap::Command;
use textwrap::WordSplitter;

/// The maximum width of a help in columns.
pub(crate) const WIDTH: usize = 110;

/// Returns the command line with a help that lists its commands by headings, and has the examples after them. A command
/// is named by its module.
pub(crate) fn grouped_help(cli: Command, groups: &[(&str, &[&str])]) -> Command {
    /// The columns of the longest name, with the spaces around it.
    const INDENT: usize = 20;
    let header = *cli.get_styles().get_header();
    let literal = *cli.get_styles().get_literal();
    let options = textwrap::Options::new(width().saturating_sub(INDENT).max(INDENT))
        .word_splitter(WordSplitter::NoHyphenation);
    let mut template = "{about-with-newline}\n{usage-heading} {usage}".to_owned();
    for (heading, modules) in groups {
        // Writing to a string cannot fail.
        let _ = write!(template, "\n\n{header}{heading}:{header:#}");
        let commands = modules.iter().filter_map(|module| cli.find_subcommand(module.replace('_', "-")));
        for command in commands.filter(|command| !command.is_hide_set()) {
            let mut about = command.get_about().map(ToString::to_string).unwrap_or_default();
            for alias in command.get_visible_aliases() {
                let _ = write!(about, " [alias: {alias}]");
            }
            let about = textwrap::wrap(&about, &options).join(&format!("\n{:INDENT$}", ""));
            let name = command.get_name();
            let _ = write!(template, "\n  {literal}{name:<16}{literal:#}  {about}");
        }
    }
    // Clap adds this command, which belongs to the last group.
    let _ = write!(template, "\n  {literal}{:<16}{literal:#}  Show this help or that of a command", "help");
    let _ = write!(template, "{{after-help}}\n\n{header}Options:{header:#}\n{{options}}");
    cli.help_template(template)
}

/// Returns the width of the help, as clap measures it for the options.
fn width() -> usize {
    let of_terminal = terminal_size::terminal_size().map(|(width, _)| width.0.into());
    let of_variable = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    of_terminal.or_else(of_variable).unwrap_or(100).min(WIDTH)
}
