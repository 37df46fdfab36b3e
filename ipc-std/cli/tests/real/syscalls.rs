//! The system calls of the tool with real runtimes; they are the same as with the fake one.
use crate::runtime::with_runtimes;
use crate::strace;

#[test]
fn info_makes_only_the_listed_calls() {
    with_runtimes(|runtime| {
        // An older runtime needs more than one command, or refuses.
        if runtime.knows(4, 8) {
            let (calls, list) = strace::info(runtime.process_id, &runtime.socket);
            strace::assert_expected(&calls, &list);
        }
    });
}
