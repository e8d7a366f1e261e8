//! How many threads this process may keep busy: the CPUs it may run on, and the share of them its cgroup grants.

use super::cgroup::{Group, field, groups};
use std::num::NonZeroUsize;

/// As many threads as this process may run at once: the CPUs of its affinity mask, or fewer where its cgroup has a quota
/// (rounded up, at least one). Asked of the system at each call.
///
/// A runtime's threads wait for each other, several hundred times a pass: one thread more than there is CPU time for makes every pass
/// slower by the length of a time slice.
#[must_use]
pub fn available_threads() -> NonZeroUsize {
    let cpus = allowed_cpus();
    match quota().and_then(NonZeroUsize::new) {
        Some(quota) => cpus.min(quota),
        None => cpus,
    }
}

/// The CPUs of the affinity mask: more threads than these never run at once.
#[must_use]
pub fn allowed_cpus() -> NonZeroUsize {
    let status = std::fs::read_to_string("/proc/self/status").ok();
    let mask = status.as_deref().and_then(|status| field(status, "Cpus_allowed_list:")).and_then(count_list);
    let known = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    mask.and_then(NonZeroUsize::new).unwrap_or_else(known)
}

/// The smallest quota of the process's cgroup and those above it, in CPUs rounded up.
fn quota() -> Option<usize> {
    groups("cpu").into_iter().filter_map(|group| group_quota(&group)).min()
}

fn group_quota(group: &Group) -> Option<usize> {
    let read = |name| std::fs::read_to_string(group.path.join(name)).ok();
    if group.unified {
        parse_cpu_max(&read("cpu.max")?)
    } else {
        cpus(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?)
    }
}

/// `"150000 100000"` is one and a half CPUs, so 2; `"max 100000"` is no quota.
fn parse_cpu_max(text: &str) -> Option<usize> {
    let (quota, period) = text.trim().split_once(' ')?;
    cpus(quota, period)
}

fn cpus(quota: &str, period: &str) -> Option<usize> {
    // -1 is no quota in version 1, as "max" is in version 2.
    let quota: u64 = quota.trim().parse().ok()?;
    let period: u64 = period.trim().parse().ok().filter(|&period| period > 0)?;
    usize::try_from(quota.div_ceil(period)).ok().map(|cpus| cpus.max(1))
}

/// CPUs in a list like `0-3,8,10-11`.
fn count_list(list: &str) -> Option<usize> {
    list.trim().split(',').try_fold(0_usize, |count, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        count.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_rounded_up() {
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(2));
        assert_eq!(parse_cpu_max("200000 100000"), Some(2));
        assert_eq!(parse_cpu_max("1000 100000"), Some(1));
        assert_eq!(parse_cpu_max("max 100000"), None);
        assert_eq!(parse_cpu_max("100000 0"), None);
        assert_eq!(cpus("-1", "100000"), None);
        assert_eq!(cpus("50000", "100000"), Some(1));
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(count_list("0-3,8,10-11\n"), Some(7));
        assert_eq!(count_list("5"), Some(1));
        assert_eq!(count_list("3-1"), None);
        assert_eq!(count_list(""), None);
    }

    #[test]
    fn at_least_one_thread() {
        assert!(available_threads().get() >= 1);
    }
}
