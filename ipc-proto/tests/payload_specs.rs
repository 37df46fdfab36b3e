//! `FilterAndPayloadSpecs`: its forms, the mistakes with their places, and that lines are read as they are written.
#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test fails by panicking")]
use ipc_proto::types::{
    ActivityEnd, BridgeEvent, PayloadFilter, PayloadSpec, PayloadSpecError, PayloadSpecProblem as Problem,
    PayloadSpecs, Sampling, SourceEvent, Transforms,
};
use proptest::prelude::*;

/// Returns the lines of a text without mistakes, which are read as they are written.
fn specs(text: &str) -> Vec<PayloadSpec<'_>> {
    let found: Vec<_> = PayloadSpecs::new(text).collect::<Result<_, _>>().unwrap();
    for spec in &found {
        assert_eq!(PayloadSpecs::new(&spec.to_string()).collect::<Vec<_>>(), [Ok(spec.clone())], "{text:?}");
        assert_eq!(PayloadSpec::new(spec.filter(), spec.has_implicit(), spec.transforms()).unwrap(), *spec);
    }
    found
}

fn events<'a>(source: &'a str, name: &'a str, recorded_as: Option<BridgeEvent>) -> PayloadFilter<'a> {
    PayloadFilter::Events { source, event: Some(SourceEvent { name, recorded_as }) }
}

fn activities<'a>(
    source: &'a str,
    activity: Option<&'a str>,
    end: Option<ActivityEnd>,
    sampling: Sampling<'a>,
) -> PayloadFilter<'a> {
    PayloadFilter::Activities { source, activity, end, sampling }
}

/// Checks what a text means, and how it is written.
fn assert_form(text: &str, filter: PayloadFilter<'_>, has_implicit: bool, transforms: &str, written: &str) {
    let expected = PayloadSpec::new(filter, has_implicit, Transforms::new(transforms).unwrap()).unwrap();
    assert_eq!(specs(text), core::slice::from_ref(&expected), "{text:?}");
    assert_eq!(expected.to_string(), written);
}

#[test]
fn every_form() {
    use ActivityEnd::{Start, Stop};
    use PayloadFilter::Everything;
    use Sampling::{ParentRate, ParentRatio, Propagate, Record, Recorded};

    let source = |source| PayloadFilter::Events { source, event: None };
    let event = |name| events("A", name, None);
    let stop = events("A", "B", Some(BridgeEvent::Activity2Stop));
    for (text, filter, has_implicit, transforms, written) in [
        ("", Everything, true, "", ":"),
        (":", Everything, true, "", ":"),
        (":-", Everything, false, "", ":-"),
        (":Id", Everything, true, "Id", ":Id"),
        ("A", source("A"), true, "", "A"),
        (" \tA b\r", source("A b"), true, "", "A b"),
        ("A:", source("A"), true, "", "A"),
        ("A:;;", source("A"), true, "", "A"),
        ("A/B.C", event("B.C"), true, "", "A/B.C"),
        ("A/B/C", event("B/C"), true, "", "A/B/C"),
        ("A/B@Event", event("B"), true, "", "A/B"),
        ("A/B@Activity2Stop:-", stop, false, "", "A/B@Activity2Stop:-"),
        ("A/ü:-ö=ä.*Enumerate", event("ü"), false, "ö=ä.*Enumerate", "A/ü:-ö=ä.*Enumerate"),
        ("A/B:X=", event("B"), true, "X=", "A/B:X="),
        ("A/B:;X.Y;;Z;", event("B"), true, "X.Y;Z", "A/B:X.Y;Z"),
        (
            "A/B:*Activity.Id;X=*Activity",
            event("B"),
            true,
            "*Activity.Id;X=*Activity",
            "A/B:*Activity.Id;X=*Activity",
        ),
    ] {
        assert_form(text, filter, has_implicit, transforms, written);
    }
    for (text, filter, written) in [
        ("[AS]", activities("", None, None, Recorded), "[AS]"),
        ("[AS]*", activities("*", None, None, Recorded), "[AS]*"),
        ("[AS]*/-", activities("*", None, None, Recorded), "[AS]*"),
        (
            "[AS] A + b c / stop - RECORD ",
            activities("A", Some("b c"), Some(Stop), Record),
            "[AS]A+b c/Stop-Record",
        ),
        ("[AS]A-B/Start", activities("A-B", None, Some(Start), Recorded), "[AS]A-B/Start"),
        ("[AS]/-propagate", activities("", None, None, Propagate), "[AS]/-Propagate"),
        (
            "[AS]A/-ParentRatioSampler( .5 )",
            activities("A", None, None, ParentRatio(".5")),
            "[AS]A/-ParentRatioSampler(.5)",
        ),
        (
            "[AS]+B/-parentratelimitingsampler(007)",
            activities("", Some("B"), None, ParentRate(7)),
            "[AS]+B/-ParentRateLimitingSampler(7)",
        ),
    ] {
        assert_form(text, filter, true, "", written);
        assert_form(&format!("{text}:-Id"), filter, false, "Id", &format!("{written}:-Id"));
    }
    for ratio in ["0", "0.", "1", "01.00", "0.125", ".0"] {
        let text = format!("[AS]A/-ParentRatioSampler({ratio})");
        assert_form(&text, activities("A", None, None, ParentRatio(ratio)), true, "", &text);
    }
    for event in BridgeEvent::ALL {
        let text = format!("A/B@{}", event.name());
        assert_form(&text, events("A", "B", Some(*event)), true, "", &text);
    }
}

#[test]
fn transforms() {
    let transforms = Transforms::new("Id;Name=A.B.C;All=;X=*Activity.Tags.*Enumerate").unwrap();
    let parts: Vec<(&str, Vec<&str>)> = transforms.map(|t| (t.name(), t.properties().collect())).collect();
    let expected = [
        ("Id", vec!["Id"]),
        ("Name", vec!["A", "B", "C"]),
        ("All", vec![]),
        ("X", vec!["*Activity", "Tags", "*Enumerate"]),
    ];
    assert_eq!(parts, expected);
    assert_ne!(Transforms::new("A").unwrap(), Transforms::new("B").unwrap());
    assert_eq!(Transforms::new(";A").unwrap(), Transforms::new("A;").unwrap());
    assert_eq!(Transforms::NONE.count(), 0);
}

#[test]
fn lines() {
    let written = |text| specs(text).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(written("A\nB/C\r\n[AS]D"), ["A", "B/C", "[AS]D"]);
    assert_eq!(written("A\n\n \r\n\tB\n\n"), ["A", "B"]);
    assert_eq!(written("A\n:\nB"), ["A", ":", "B"]);
}

/// Every mistake has the place of the part with it, and the lines around it are read.
#[test]
fn mistakes() {
    for (before, part, problem) in [
        ("", "/", Problem::EmptyName),
        ("", "/B", Problem::EmptyName),
        ("A/", "", Problem::EmptyName),
        ("A/", "@Activity1Start", Problem::EmptyName),
        ("A/B@", "", Problem::BridgeEvent),
        ("A/B@", ":X", Problem::BridgeEvent),
        ("A/B@", "activity1start", Problem::BridgeEvent),
        ("A/B@", "Activity1Start@X", Problem::BridgeEvent),
        ("", "@", Problem::Separator),
        ("", "A@Activity1Start", Problem::Separator),
        ("", "-A", Problem::Separator),
        ("", "A;Id", Problem::Separator),
        ("A/", "B;Id", Problem::Separator),
        ("A/", "B-=C", Problem::Separator),
        ("", "*", Problem::Wildcard),
        ("A/", "*", Problem::Wildcard),
        ("A/", "B*:X", Problem::Wildcard),
        ("", "[as]A", Problem::Prefix),
        ("", "A /B", Problem::Whitespace),
        ("A/", " B", Problem::Whitespace),
        ("A/", "B :X", Problem::Whitespace),
        ("A/B:X;", " Y", Problem::Whitespace),
        ("A/B:", " -X", Problem::Whitespace),
        ("A/B:", "X =Y", Problem::Whitespace),
        ("A/B:X=", " Y", Problem::Whitespace),
        ("A/B:", "=Y", Problem::EmptyName),
        ("A/B:", ".Y", Problem::EmptyName),
        ("A/B:X.", ".Y", Problem::EmptyName),
        ("A/B:X.", "", Problem::EmptyName),
        ("A/B:-", "-X", Problem::Separator),
        ("A/B:X;", "-Y", Problem::Separator),
        ("A/B:X=;", "-", Problem::Separator),
        ("A/B:X=", "Y=Z", Problem::Separator),
        ("A/B:é.", "*Other", Problem::Property),
        ("A/B:é.", "*enumerate.X", Problem::Property),
        ("[AS]", "A*", Problem::Wildcard),
        ("[AS]", "A=X", Problem::Separator),
        ("[AS]A+", "", Problem::EmptyName),
        ("[AS]* + ", "B", Problem::ActivityOfEverySource),
        ("[AS]A/", "Started", Problem::End),
        ("[AS]A/", "Start@Activity1Start", Problem::End),
        ("[AS]A/", "Start/Stop", Problem::End),
        ("[AS]A/ Start - ", "Recorded", Problem::Sampling),
        ("[AS]A/-", "ParentRatioSampler(0.5", Problem::Sampling),
        ("[AS]A/-", "ParentRatioSampler(0.5)x", Problem::Sampling),
        ("[AS]A/-", "ParentRatioSampler()", Problem::Ratio),
        ("[AS]A/-", "ParentRatioSampler(.)", Problem::Ratio),
        ("[AS]A/-", "ParentRatioSampler(50)", Problem::Ratio),
        ("[AS]A/-", "ParentRatioSampler(11)", Problem::Ratio),
        ("[AS]A/-", "ParentRatioSampler(1.01)", Problem::Ratio),
        ("[AS]A/-", "ParentRatioSampler(0.5))", Problem::Ratio),
        ("[AS]A/-", "ParentRateLimitingSampler(0)", Problem::Rate),
        ("[AS]A/-", "ParentRateLimitingSampler(+1)", Problem::Rate),
        ("[AS]A/-", "ParentRateLimitingSampler()", Problem::Rate),
        ("[AS]A/-", "ParentRateLimitingSampler(2147483648)", Problem::Rate),
        ("[AS]A/-", "ParentRateLimitingSampler(99999999999)", Problem::Rate),
        ("[AS]A/Stop:", "=X", Problem::EmptyName),
    ] {
        let text = format!("é\n{before}{part}\nZ");
        let around = |source| Ok(specs(source).remove(0));
        let error = Err(PayloadSpecError { problem, place: "é\n".len() + before.len() });
        assert_eq!(
            PayloadSpecs::new(&text).collect::<Vec<_>>(),
            [around("é"), error, around("Z")],
            "{text:?}"
        );
    }
    for text in [" ", "\n", "\r\n ", "\n\n"] {
        let error = PayloadSpecError { problem: Problem::BlankFirstLine, place: 0 };
        assert_eq!(PayloadSpecs::new(text).collect::<Vec<_>>(), [Err(error)], "{text:?}");
    }
    assert_eq!(PayloadSpecs::new("\n\nA").map(|spec| spec.is_ok()).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn what_cannot_be_written() {
    let refused = |filter| PayloadSpec::new(filter, true, Transforms::NONE).unwrap_err();
    for (name, problem) in [
        ("", Problem::EmptyName),
        ("A\nB", Problem::Separator),
        ("A:B", Problem::Separator),
        ("A ", Problem::Whitespace),
        ("A*", Problem::Wildcard),
    ] {
        assert_eq!(refused(events(name, "B", None)), problem, "{name:?}");
        assert_eq!(refused(events("A", name, None)), problem, "{name:?}");
        assert_eq!(refused(activities("A", Some(name), None, Sampling::Recorded)), problem, "{name:?}");
        if !name.is_empty() {
            assert_eq!(refused(activities(name, None, None, Sampling::Recorded)), problem, "{name:?}");
        }
    }
    assert_eq!(refused(events("A/B", "C", None)), Problem::Separator);
    assert_eq!(refused(events("A", "B@C", None)), Problem::Separator);
    assert_eq!(refused(events("[AS]A", "B", None)), Problem::Prefix);
    assert_eq!(refused(activities("A+B", None, None, Sampling::Recorded)), Problem::Separator);
    assert_eq!(refused(activities("A", Some("B/C"), None, Sampling::Recorded)), Problem::Separator);
    assert_eq!(refused(activities("*", Some("B"), None, Sampling::Record)), Problem::ActivityOfEverySource);
    assert_eq!(refused(activities("A", None, None, Sampling::ParentRatio("2"))), Problem::Ratio);
    assert_eq!(refused(activities("A", None, None, Sampling::ParentRate(0))), Problem::Rate);
    for (text, place) in [("-A", 0), ("A;B\nC", 2), ("A;B=C=D", 4)] {
        assert_eq!(
            Transforms::new(text),
            Err(PayloadSpecError { problem: Problem::Separator, place }),
            "{text:?}"
        );
    }
}

proptest! {
    /// What is read from any text is read again as it is written, and places are in the text.
    #[test]
    fn any_text(text in "([AB*é/@:;=.+ \n-]|\\[AS\\]|\\*Activity|@Activity1Stop|/Start|-Record){0,16}") {
        for spec in PayloadSpecs::new(&text) {
            match spec {
                Ok(spec) => {
                    let written = spec.to_string();
                    prop_assert_eq!(PayloadSpecs::new(&written).collect::<Vec<_>>(), [Ok(spec)]);
                }
                Err(error) => prop_assert!(text.is_char_boundary(error.place)),
            }
        }
    }
}
