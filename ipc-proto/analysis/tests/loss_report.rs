//! Sentences about lost events.
use nettrace::{Corruption, End, Losses, TraceClock};
use nettrace_analysis::{EventBuffer, LossReport};

#[test]
fn each_kind_of_loss() {
    const LARGE: &str = "were larger than 64 KiB, which no runtime records";
    const END: &str = "after the last event of their thread, as at the end of a session";
    let full = format!("the event buffer was full, or they {LARGE}");
    for (numbers, expected, has_advice) in [
        ([6, 0, 0, 1], format!("; on 1 thread, at 2.500 s): {full}"), true),
        ([42, 0, 42, 12], format!("; on 12 threads, at 2.500 s): {END}"), false),
        ([4_200, 0, 4_200, 12], format!("; on 12 threads, at 2.500 s): {END}"), true),
        ([6, 0, 2, 2], format!("; on 2 threads, at 2.500 s): {full}; 2 of them {END}"), true),
        (
            [6, 5, 0, 0],
            format!(", at 2.500 s): {full}; 5 of them before the first event of their thread"),
            true,
        ),
    ] {
        let mut losses = Losses::default();
        [losses.lost, losses.at_start, losses.at_end, losses.threads] = numbers;
        losses.times = Some((2_500_000_000, 2_500_400_000));
        let clock = Some(TraceClock::default());
        let mut report = LossReport { losses, clock, buffer: EventBuffer::MayFill, end: None };
        assert_eq!(report.to_string(), format!("(at least{expected}"));
        assert_eq!(report.may_have_full_buffer(), has_advice);
        report.losses.times = Some((1_000_000, 2_500_000_000));
        assert!(report.to_string().contains(", from 0.001 s to 2.500 s): "), "{report}");
        report.clock = None;
        assert!(!report.to_string().contains(" s): "), "{report}");
        for (buffer, cause) in [
            (EventBuffer::NeverFull, "they"),
            (EventBuffer::Blocks, "they were written while the session stopped, or"),
        ] {
            report.buffer = buffer;
            assert!(!report.may_have_full_buffer());
            let expected = if numbers[0] == numbers[2] { END.to_owned() } else { format!("{cause} {LARGE}") };
            assert!(report.to_string().contains(&format!("): {expected}")), "{report}");
        }
    }
}

/// The events of a block that cannot be read have no records, so their numbers are missing as if they had been lost.
#[test]
fn a_bad_block_is_a_cause() {
    let mut losses = Losses::default();
    losses.lost = 34;
    let end = Some(End::Corrupt { offset: 100, reason: Corruption::Object });
    let report = LossReport { losses, clock: None, buffer: EventBuffer::MayFill, end };
    assert!(
        report
            .to_string()
            .starts_with("(at least): they were in a part of the trace that cannot be read, or the event"),
        "{report}"
    );
    assert!(!report.may_have_full_buffer());
}
