//! Where Linux says what this process may have: `/proc`, and the cgroups that limit it.

use std::path::{Path, PathBuf};

/// What follows `name` on its line in a file of `/proc`.
pub(super) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// A cgroup folder that limits this process.
#[derive(Debug, PartialEq)]
pub(super) struct Group {
    pub(super) path: PathBuf,
    /// Version 2, where all controllers share one tree.
    pub(super) unified: bool,
}

/// The process's cgroup for a controller, and those above it: each of them limits.
pub(super) fn groups(controller: &str) -> Vec<Group> {
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
}
