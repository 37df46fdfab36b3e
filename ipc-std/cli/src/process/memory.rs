//! The memory of a process, as Linux shows it.
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the memory of a process that is not swapped out, in bytes; `None` if this system does not show it.
pub(crate) fn resident(process_id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    kilobytes?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the bytes that a process can still take before it reaches the memory limit of its container; `None` if it has
/// no limit, or if this system does not show it.
pub(crate) fn left_by_limit(process_id: u32) -> Option<u64> {
    let process = PathBuf::from(format!("/proc/{process_id}"));
    left(&process, Path::new("/sys/fs/cgroup"))
}

/// Reads the limits (cgroup v2) of a process's group and of the groups around it.
fn left(process: &Path, groups: &Path) -> Option<u64> {
    let cgroup = fs::read_to_string(process.join("cgroup")).ok()?;
    let group = cgroup.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let of_group = groups.join(group);
    let around = of_group.ancestors().take_while(|folder| folder.starts_with(groups)).map(Path::to_owned);
    // In a container of its own, the process sees its group as the root.
    let seen = process.join("root").join(groups.strip_prefix("/").unwrap_or(groups));
    let number = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let left = |folder: PathBuf| {
        let [limit, used] = ["memory.max", "memory.current"].map(|name| number(folder.join(name)));
        Some(limit?.saturating_sub(used?))
    };
    around.chain([seen]).filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn the_strictest_limit_counts() {
        let root = tempfile::TempDir::new().unwrap();
        let [process, groups] = ["process", "groups"].map(|name| root.path().join(name));
        let pod = groups.join("pod");
        let seen = process.join("root").join(groups.strip_prefix("/").unwrap());
        for folder in [&pod.join("app"), &seen] {
            fs::create_dir_all(folder).unwrap();
        }
        let write = |folder: &std::path::Path, limit: &str, used: &str| {
            fs::write(folder.join("memory.max"), limit).unwrap();
            fs::write(folder.join("memory.current"), used).unwrap();
        };
        assert_eq!(super::left(&process, &groups), None);
        fs::write(process.join("cgroup"), "4:memory:/other\n0::/pod/app\n").unwrap();
        write(&pod.join("app"), "max\n", "10\n");
        assert_eq!(super::left(&process, &groups), None);
        write(&pod, "1000\n", "400\n");
        assert_eq!(super::left(&process, &groups), Some(600));
        write(&pod.join("app"), "500\n", "600\n");
        assert_eq!(super::left(&process, &groups), Some(0));
        fs::write(process.join("cgroup"), "0::/../elsewhere\n").unwrap();
        write(&seen, "700\n", "0\n");
        assert_eq!(super::left(&process, &groups), Some(700));
    }
}
