//! How many threads this process may keep busy: the CPUs it may run on, and the share of them its cgroup grants.
//!
//! llama.cpp's threads wait for each other at barriers, several hundred a pass: one thread more than there is CPU time for
//! makes every pass slower by the length of a time slice.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

/// As many threads as this process may run at once: the CPUs of its affinity mask, or fewer where its cgroup has a quota
/// (rounded up, at least one). Asked of the system at each call.
#[must_use]
pub fn available_threads() -> NonZeroUsize {
    let cpus = allowed_cpus();
    match quota().and_then(NonZeroUsize::new) {
        Some(quota) => cpus.min(quota),
        None => cpus,
    }
}

/// The CPUs of the affinity mask: more threads than these never run at once.
pub(crate) fn allowed_cpus() -> NonZeroUsize {
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

/// What follows `name` on its line in a file of `/proc`.
pub(crate) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// A cgroup folder that limits this process.
#[derive(Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) path: PathBuf,
    /// Version 2, where all controllers share one tree.
    pub(crate) unified: bool,
}

/// The process's cgroup for a controller, and those above it: each of them limits.
pub(crate) fn groups(controller: &str) -> Vec<Group> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    parse_groups(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"), controller)
}

fn parse_groups(cgroup: &str, mountinfo: &str, controller: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for line in cgroup.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(inside)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let unified = controllers.is_empty();
        if !unified && !controllers.split(',').any(|name| name == controller) {
            continue;
        }
        let Some((root, mount)) = mount_of(mountinfo, unified, controller) else { continue };
        // In a container the mount shows a part of the tree; its root is then where the container begins.
        let inside = Path::new(inside);
        let below = inside.strip_prefix(root).unwrap_or_else(|_| inside.strip_prefix("/").unwrap_or(inside));
        let innermost = Path::new(mount).join(below);
        let within = innermost.ancestors().take_while(|path| path.starts_with(mount));
        groups.extend(within.map(|path| Group { path: path.to_owned(), unified }));
    }
    groups
}

/// Root and mount point of the hierarchy, from `/proc/self/mountinfo`:
/// `30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate`.
fn mount_of<'t>(mountinfo: &'t str, unified: bool, controller: &str) -> Option<(&'t str, &'t str)> {
    mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1)?);
        let fits =
            if unified { kind == "cgroup2" } else { kind == "cgroup" && options.split(',').any(|o| o == controller) };
        let mut before = before.split(' ').skip(3);
        let place = (before.next()?, before.next()?);
        fits.then_some(place)
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
    fn a_group_and_those_above_it_limit_version_2() {
        let mounts = "24 1 0:22 / /proc rw - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let paths: Vec<_> = parse_groups("0::/a/b\n", mounts, "cpu").into_iter().map(|group| group.path).collect();
        assert_eq!(paths, ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"].map(PathBuf::from));
    }

    #[test]
    fn a_container_sees_a_part_of_the_tree_of_version_1() {
        let mounts = "36 25 0:32 /docker/c0ffee /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n";
        let cgroup = "5:memory:/docker/c0ffee\n4:cpu,cpuacct:/docker/c0ffee\n0::/docker/c0ffee\n";
        let groups = parse_groups(cgroup, mounts, "cpu");
        assert_eq!(groups, [Group { path: "/sys/fs/cgroup/cpu,cpuacct".into(), unified: false }]);
    }

    #[test]
    fn at_least_one_thread() {
        assert!(available_threads().get() >= 1);
    }
}
