//! Variables of fake runtimes: they answer as .NET 8.0.31, 9.0.20 and 10.0.12 did.
#![cfg(feature = "io")]
#![allow(clippy::unwrap_used, reason = "a test fails by unwrapping")]

use ipc_proto::HResult;
use ipc_std::Client;
use ipc_testkit::{FakeRuntime, Profile};

/// Sets or removes variables in this order; returns the refusal of each step.
fn refusals<const N: usize>(profile: Profile, steps: [(&str, Option<&str>); N]) -> [Option<HResult>; N] {
    let runtime = FakeRuntime::start(profile).unwrap();
    let client = Client::at(runtime.path());
    steps
        .map(|(name, value)| client.set_environment_variable(name, value).err().map(|e| e.hresult().unwrap()))
}

#[test]
fn a_variable_that_does_not_exist_cannot_be_removed() {
    const ABSENT: Option<HResult> = Some(HResult::ENVVAR_NOT_FOUND);
    for profile in [Profile::net10, Profile::net9, Profile::net8] {
        for suspended in [false, true] {
            let profile = Profile { suspended, ..profile() };
            let removed =
                refusals(profile, [("NEVER_SET", None), ("HOME", None), ("HOME", None), ("=C", None)]);
            assert_eq!(removed, [ABSENT, None, ABSENT, ABSENT]);
        }
    }
    let removed = refusals(Profile::net10(), [("A", Some("")), ("A", None), ("A", None), ("a", None)]);
    assert_eq!(removed, [None, None, ABSENT, ABSENT], "an empty variable exists");
    let removed = refusals(Profile::net10(), [("D=E", Some("x")), ("D", None), ("D=E", None)]);
    assert_eq!(removed, [None, None, ABSENT], "the name ends at the first equals sign");
}

#[test]
fn a_name_does_not_begin_with_an_equals_sign() {
    for profile in [Profile::net10(), Profile::net9(), Profile::net8()] {
        // The code of ERROR_NOT_ENOUGH_MEMORY.
        assert_eq!(refusals(profile, [("=C", Some("x"))]), [Some(HResult(0x8007_0008))]);
    }
    // The code is the return value of `setenv`.
    assert_eq!(refusals(Profile::net9_aot(), [("=C", Some("x"))]), [Some(HResult(0xffff_ffff))]);
}
