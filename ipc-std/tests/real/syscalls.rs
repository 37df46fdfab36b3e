//! `strace` of the tool with real runtimes: as with the fake one.
use crate::runtime::with_runtimes;
use crate::strace;

#[test]
fn info_makes_the_calls_of_the_list() {
    with_runtimes(|runtime| {
        // An older one is asked more than once, or refuses.
        if runtime.knows(4, 8) {
            let (calls, list) = strace::info(runtime.process_id, &runtime.socket);
            strace::assert_expected(&calls, &list);
        }
    });
}
