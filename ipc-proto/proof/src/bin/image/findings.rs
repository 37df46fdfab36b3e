//! Reads the findings in the environment of a runtime.
use ipc_proto::plan::Flavour;
use ipc_proto::port::{Config, Finding};

use crate::register::{number, text, write_number};

pub fn run() {
    let config = Config::read(Flavour::CoreClr, |_| (number() > 0).then(text));
    for finding in config.findings() {
        write_number(matches!(finding, Finding::NoPorts { .. }).into());
    }
}
