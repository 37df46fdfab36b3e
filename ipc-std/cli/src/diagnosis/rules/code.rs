//! Methods of the program that compute, throw, wait for locks, open connections or need compilation.
use nettrace_analysis::names::{short_name, source_name};

use crate::diagnosis::blocked_threads::Blocker;
use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Finding, Severity};
use crate::diagnosis::own_shares::OwnShare;

/// Waits for locks.
pub(super) fn contention(facts: &Facts) -> Option<Finding> {
    const THREADS: f64 = 0.3;
    let waiting = facts.waiting_threads();
    if waiting < THREADS {
        return None;
    }
    let method = facts.contention.heaviest();
    let place = method
        .as_ref()
        .map_or_else(String::new, |of| format!("; {} of the time in {}", of.percent, of.place));
    let holder = facts.locks.locks.first().and_then(|lock| {
        let held_in = lock.held_in.first()?;
        (held_in.samples >= lock.held_samples / 2).then(|| source_name(short_name(&held_in.method)))
    });
    let holder = holder.map_or_else(String::new, |holder| format!("; the lock is mostly held in {holder}"));
    let evidence = format!(
        "{waiting:.1} threads wait for locks at any time, up to {:.0} ms{place}{holder}",
        facts.longest_wait() as f64 / 1e6
    );
    let finding = Finding::new("contention", Severity::high_if(waiting >= 1.0), evidence);
    Some(finding.in_method(method.map(|of| of.method)).see("dotnet-ipc locks TARGET"))
}

/// Exceptions as a habit.
pub(super) fn exceptions(facts: &Facts) -> Option<Finding> {
    const PER_SECOND: f64 = 20.0;
    let rate = facts.per_second(facts.exceptions.total);
    if rate < PER_SECOND {
        return None;
    }
    let most = facts.evidence.exceptions.iter().max_by_key(|(_, count)| **count);
    let most = most.map_or_else(String::new, |(name, _)| format!(", most of them {name}"));
    let method = facts.exceptions.heaviest();
    let place = method.as_ref().map_or_else(String::new, |of| format!("; {} from {}", of.percent, of.place));
    let evidence = format!("the program throws {rate:.0} exceptions a second{most}{place}");
    let finding = Finding::new("exceptions", Severity::high_if(rate >= 10.0 * PER_SECOND), evidence);
    Some(finding.in_method(method.map(|of| of.method)).see("dotnet-ipc report TARGET --exceptions"))
}

/// One method that takes much of the processor.
pub(super) fn processor(facts: &Facts) -> Option<Finding> {
    const CORES: f64 = 0.8;
    const SHARE: f64 = 0.3;
    let cores = facts.cores.filter(|cores| *cores >= CORES)?;
    let OwnShare { method, percent, place, .. } = facts.cpu.heaviest().filter(|of| of.share >= SHARE)?;
    let of = facts.evidence.processors.map_or_else(String::new, |processors| format!(" of {processors}"));
    let evidence = format!(
        "the process uses {cores:.1}{of} cores; {percent} of the samples of running code are in {place}",
    );
    let finding = Finding::new("processor", Severity::high_if(cores >= 1.2 * CORES), evidence);
    Some(finding.in_method(method).see("dotnet-ipc report TARGET --by own"))
}

/// A start that takes long.
pub(super) fn start(facts: &Facts) -> Option<Finding> {
    const SECONDS: f64 = 0.3;
    let places = facts.main_thread.places.iter().take_while(|(_, seconds)| *seconds >= SECONDS);
    let texts: Vec<_> = places
        .take(3)
        .map(|((blocker, method), seconds)| match blocker {
            Blocker::Other => format!("{seconds:.1} s in {method}"),
            blocker => format!("{seconds:.1} s {} in {method}", blocker.text()),
        })
        .collect();
    let ((_, method), longest) = facts.main_thread.places.first()?;
    if texts.is_empty() {
        return None;
    }
    let evidence = format!("while the process started, its main thread spent {}", texts.join(", "));
    let finding = Finding::new("start", Severity::high_if(*longest >= 1.0), evidence);
    Some(finding.in_method(method.clone()).see("dotnet-ipc report TARGET --wall --tree --short"))
}

/// Compilation at the start, or of methods that the program makes while it runs. Other compilations end by themselves.
pub(super) fn compilation(facts: &Facts) -> Option<Finding> {
    const SECONDS: f64 = 1.0;
    const DYNAMIC: u64 = 100;
    const DYNAMIC_RATE: f64 = 10.0;
    let compiled = &facts.evidence.compiled;
    let seconds = compiled.nanoseconds as f64 / 1e9;
    let is_start = facts.evidence.is_start && seconds >= SECONDS && compiled.dynamic >= DYNAMIC;
    if !is_start && facts.per_second(compiled.dynamic) < DYNAMIC_RATE {
        return None;
    }
    let method = facts.compilations.heaviest_callee();
    let place = method.as_ref().map_or_else(String::new, |of| format!("; {} below {}", of.percent, of.place));
    let when = if facts.evidence.is_start { " since the start of the process" } else { "" };
    let dynamic = match compiled.dynamic {
        0 => String::new(),
        dynamic => {
            format!(", {dynamic} of them made at run time (compiled expressions or regular expressions)")
        }
    };
    let evidence = format!(
        "{} methods were compiled for {seconds:.2} s of {:.1} s{when}{dynamic}{place}",
        compiled.count, facts.seconds
    );
    let finding = Finding::new("compilation", Severity::high_if(is_start), evidence);
    Some(finding.in_method(method.map(|of| of.method)).see("dotnet-ipc jit TARGET"))
}
