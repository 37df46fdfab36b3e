//! [`Code`]: the number of a command, or of an answer.
use core::fmt;

/// A command set and the id of a command in it, written as in the specification: `0x0203` is set 2, id 3.
///
/// ```
/// use ipc_proto::Code;
/// assert_eq!((Code(0x0203).set(), Code(0x0203).id()), (2, 3));
/// assert_eq!(Code(0x0203).to_string(), "0x0203");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Code(pub u16);

impl Code {
    /// The code of the answer to a command that succeeded.
    pub const OK: Self = Self(0xff00);
    /// The code of the answer to a command that was refused.
    pub const ERROR: Self = Self(0xffff);

    /// Returns the command set.
    #[must_use]
    pub const fn set(self) -> u8 {
        self.0.to_be_bytes()[0]
    }
    /// Returns the command's id within its set.
    #[must_use]
    pub const fn id(self) -> u8 {
        self.0.to_be_bytes()[1]
    }
}
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
