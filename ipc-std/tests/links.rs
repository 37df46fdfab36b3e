//! Checks that each link of a page leads to a file of this repository, and to a heading if it names one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod page;

use crate::page::{headings, pages, prose};

/// Returns the anchor of a heading, as GitHub and rustdoc form it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let mut dead = Vec::new();
    for (page, text) in &pages {
        let text = prose(text).collect::<Vec<_>>().join("\n");
        for (link, _) in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = page.parent().unwrap().join(file);
            // Other links are addresses, or items of the documentation.
            let is_file = file.contains('/') || [".md", ".rs", ".txt"].iter().any(|end| file.ends_with(end));
            let is_address = link.contains(':');
            if is_file && !is_address && !target.exists() {
                dead.push(format!("{}: {link}", page.display()));
            }
            let linked = if file.is_empty() { page.canonicalize().ok() } else { target.canonicalize().ok() };
            let linked = pages.iter().find(|(page, _)| page.canonicalize().ok() == linked);
            let has_heading = |text| headings(text).any(|other| anchor(other) == heading);
            if !heading.is_empty() && !is_address && linked.is_some_and(|(_, text)| !has_heading(text)) {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn anchors_are_those_of_rendered_pages() {
    assert_eq!(anchor("Compared with dotnet-trace"), "compared-with-dotnet-trace");
    assert_eq!(anchor("The limits of `equal`"), "the-limits-of-equal");
    assert_eq!(anchor("Find a process, or learn why not"), "find-a-process-or-learn-why-not");
}
