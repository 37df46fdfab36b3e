//! The numbers of a period that are not shares of functions.
use indicatif::DecimalBytes;
use nettrace_analysis::live::Activity;
use nettrace_analysis::report::{NOTABLE, is_nearly_idle};
use nettrace_analysis::samples::CpuCauses;

use super::view::percent;

/// Returns the numbers as texts.
pub(super) fn rates(activity: &Activity, cores: Option<f64>) -> Vec<String> {
    let per_second = |count| activity.per_second(count);
    let mut rates = Vec::new();
    rates.extend(cores.map(|cores| format!("{cores:.2} cores")));
    let threads = activity.threads.len();
    rates.push(match activity.hides_running {
        true => format!("{threads} threads"),
        false => format!("{:.2} of {threads} threads run", activity.running_threads()),
    });
    rates.push(format!(
        "GC paused {:.1} %, {:.1}/s",
        activity.paused_share() * 100.0,
        per_second(activity.collections)
    ));
    let CpuCauses { total, pool_spin, session, .. } = activity.causes;
    let is_idle = is_nearly_idle(total, activity.running_threads());
    if is_idle && activity.rounds > 0 && !activity.hides_running {
        rates.push("nearly idle".to_owned());
    }
    for (part, what) in [(pool_spin, "spin of idle pool"), (session, "work for this session")] {
        let share = percent(part, total);
        if share >= NOTABLE && !is_idle {
            rates.push(format!("{share:.0} % {what}"));
        }
    }
    rates.push(format!("{}/s allocated", DecimalBytes(allocated_per_second(activity))));
    rates.push(format!("{:.0} exceptions/s", per_second(activity.exceptions)));
    rates
}

fn allocated_per_second(activity: &Activity) -> u64 {
    let bytes = u128::from(activity.allocated).saturating_mul(1_000_000_000);
    u64::try_from(bytes.checked_div(activity.span.into()).unwrap_or_default()).unwrap_or(u64::MAX)
}
