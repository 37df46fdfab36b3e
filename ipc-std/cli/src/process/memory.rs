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

/// The limit of a group of cgroup v1 without a limit is a little less than 2^63.
const NO_LIMIT: u64 = 1 << 62;

/// Reads the limits of a process's groups and of the groups around them.
fn left(process: &Path, groups: &Path) -> Option<u64> {
    let of_line = |line: &str| {
        let (controllers, group) = line.split_once(':')?.1.split_once(":/")?;
        let (root, names) = match controllers {
            // Version 2.
            "" => (groups.to_owned(), ["memory.max", "memory.current"]),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                (groups.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes"])
            }
            _ => return None,
        };
        let of_group = root.join(group);
        let around = of_group.ancestors().take_while(|folder| folder.starts_with(&root)).map(Path::to_owned);
        // In a container of its own, the process sees its group as the root.
        let seen = process.join("root").join(root.strip_prefix("/").unwrap_or(&root));
        let number = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
        let left = |folder: PathBuf| {
            let [limit, used] = names.map(|name| number(folder.join(name)));
            Some(limit.filter(|limit| *limit < NO_LIMIT)?.saturating_sub(used?))
        };
        around.chain([seen]).filter_map(left).min()
    };
    fs::read_to_string(process.join("cgroup")).ok()?.lines().filter_map(of_line).min()
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
        // Version 1 has a folder for each controller, and a large number for no limit.
        let of_memory = groups.join("memory/app");
        fs::create_dir_all(&of_memory).unwrap();
        fs::write(process.join("cgroup"), "5:cpu:/other\n4:hugetlb,memory:/app\n0::/\n").unwrap();
        fs::write(of_memory.join("memory.usage_in_bytes"), "100\n").unwrap();
        for (limit, left) in [("9223372036854771712", 700), ("300", 200)] {
            fs::write(of_memory.join("memory.limit_in_bytes"), limit).unwrap();
            assert_eq!(super::left(&process, &groups), Some(left));
        }
    }
}
