//! The tool on a terminal.
use core::sync::atomic::{AtomicBool, Ordering};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use super::{TOOL, finish, program, tool, until_some};

/// The tool on a terminal of 24 rows.
pub(crate) struct OnTerminal {
    pub(crate) child: Option<Child>,
    keys: File,
    slave: OwnedFd,
    output: Receiver<Vec<u8>>,
    reader: JoinHandle<()>,
    /// Makes the reader end.
    ends: Arc<AtomicBool>,
    seen: String,
    /// The modes before the tool has changed them.
    modes: String,
}

fn modes(slave: &OwnedFd) -> String {
    format!("{:?}", tcgetattr(slave).unwrap())
}

impl OnTerminal {
    pub(crate) fn start(args: &[&str], columns: u16) -> Self {
        Self::of(tool(args), columns)
    }

    /// Starts a program that starts the tool.
    pub(crate) fn of(mut command: Command, columns: u16) -> Self {
        // The tool must not have a copy of the other end, so that the terminal ends with the test.
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        fcntl_setfd(&master, FdFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let size = Winsize { ws_col: columns, ws_row: 24, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).unwrap();
        let modes = modes(&slave);
        let end = || slave.try_clone().unwrap();
        let child = command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end()).spawn();
        // The command has copies of the terminal.
        drop(command);
        let keys = File::from(master);
        let mut screen = keys.try_clone().unwrap();
        let (sender, output) = mpsc::channel();
        let ends = Arc::new(AtomicBool::new(false));
        let is_ended = Arc::clone(&ends);
        let reader = thread::spawn(move || {
            let mut buf = [0; 4096];
            let tick = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            while !is_ended.load(Ordering::SeqCst) {
                if poll(&mut [PollFd::new(&screen, PollFlags::IN)], Some(&tick)) == Ok(0) {
                    continue;
                }
                match screen.read(&mut buf) {
                    Ok(n @ 1..) if sender.send(buf[..n].to_vec()).is_ok() => {}
                    _ => return,
                }
            }
        });
        Self { child: Some(child.unwrap()), keys, slave, output, reader, ends, seen: String::new(), modes }
    }

    /// Starts a shell that has this terminal as that of its session. In its script, `run` runs the tool after a line with
    /// its process id. The flag `-m` turns job control on.
    pub(crate) fn shell(flags: &str, script: &str, args: &[&str]) -> Self {
        const RUN: &str = r#"run() { sh -c 'echo "pid $$"; exec "$0" "$@"' "$TOOL" "$@"; };"#;
        let mut shell = program("setsid");
        shell.args(["--ctty", "--wait", "sh", flags, &format!("{RUN} {script}"), "sh"]).args(args);
        shell.env("TOOL", TOOL);
        Self::of(shell, 100)
    }

    /// Waits until the tool has written this text, after the text of the last call. Returns what it has written in
    /// between.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let Self { output, seen, .. } = self;
        until_some(&format!("{text:?} does not come"), || {
            output.try_iter().for_each(|bytes| seen.push_str(&String::from_utf8_lossy(&bytes)));
            let (before, after) = seen.split_once(text)?;
            let (before, after) = (before.to_owned(), after.to_owned());
            *seen = after;
            Some(before)
        })
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn is_changed(&self) -> bool {
        modes(&self.slave) != self.modes
    }

    /// Waits for the end of the tool, which leaves the terminal as it was.
    #[track_caller]
    pub(crate) fn ends_with(&mut self, status: i32) {
        self.wait_for("\x1b[?1049l");
        let ran = finish(self.child.take().unwrap());
        assert_eq!(ran.status, Some(status));
        assert!(!self.is_changed());
    }

    /// Waits for the end of the started program, which leaves the terminal as it was.
    #[track_caller]
    pub(crate) fn ends_unchanged(&mut self) {
        finish(self.child.take().unwrap());
        assert!(!self.is_changed());
    }

    /// Waits for the end of the tool. Returns its exit status and all that it has written since the last call of
    /// [`wait_for`](Self::wait_for).
    #[track_caller]
    pub(crate) fn rest(mut self) -> (Option<i32>, Vec<u8>) {
        let status = finish(self.child.take().unwrap()).status;
        // The reader ends when no process has the terminal.
        drop(self.slave);
        self.reader.join().unwrap();
        (status, [self.seen.into_bytes(), self.output.try_iter().flatten().collect()].concat())
    }

    /// Ends the terminal. Returns the tool.
    pub(crate) fn hang_up(mut self) -> Child {
        self.ends.store(true, Ordering::SeqCst);
        self.reader.join().unwrap();
        self.child.take().unwrap()
    }
}
