//! The tool on a terminal.
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use super::{finish, tool, until_some};

/// The tool on a terminal of 24 rows.
pub(crate) struct OnTerminal {
    pub(crate) child: Option<Child>,
    keys: File,
    slave: OwnedFd,
    output: Receiver<Vec<u8>>,
    seen: String,
    /// The modes before the tool has changed them.
    modes: String,
}

fn modes(slave: &OwnedFd) -> String {
    format!("{:?}", tcgetattr(slave).unwrap())
}

impl OnTerminal {
    pub(crate) fn start(args: &[&str], columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let size = Winsize { ws_col: columns, ws_row: 24, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).unwrap();
        let modes = modes(&slave);
        let end = || slave.try_clone().unwrap();
        let child = tool(args).env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end()).spawn();
        let keys = File::from(master);
        let mut screen = keys.try_clone().unwrap();
        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            let mut buf = [0; 4096];
            while let Ok(n) = screen.read(&mut buf) {
                if n == 0 || sender.send(buf[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child: Some(child.unwrap()), keys, slave, output, seen: String::new(), modes }
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
}
