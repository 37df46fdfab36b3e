//! The arguments of the kernel's ioctls that register a tracepoint (`UserReg`) and end the registration (`UserUnreg`).
use ipc_proto::wire::Writer;

/// The registration of a tracepoint: `struct user_reg` of the kernel, the argument of the ioctl [`UserReg::IOCTL`].
///
/// ```text
///  0      4            5             6       8             16          24
/// | size | enable bit | enable size | flags | enable addr | name args | write index |
///   u32    u8           u8            u16     u64           u64         u32            in the byte order of the system
/// ```
///
/// The kernel sets the enable bit at the address while a consumer listens to the tracepoint, and replaces the write
/// index. The memory at the address must stay valid until [`UserUnreg`] or the end of the process: closing the
/// descriptor does not end the registration of the bit.
///
/// A runtime fills the argument like this. The ioctl itself needs unsafe code:
///
/// ```
/// use core::sync::atomic::AtomicU32;
/// use ipc_proto::types::TracepointFormat;
/// use nettrace::user_events::UserReg;
///
/// let (format, enabled) = (TracepointFormat::new("MyTracepoint")?, AtomicU32::new(0));
/// let registration = UserReg::new(enabled.as_ptr().addr() as u64, format.as_c_str().as_ptr().addr() as u64);
/// let mut argument = registration.to_bytes();
/// assert_eq!(argument[..8], [&28u32.to_ne_bytes()[..], &[31, 4, 0, 0]].concat());
/// // ioctl(user_events_data, UserReg::IOCTL, &mut argument)
/// argument[24] = 7; // by the kernel
/// # #[cfg(target_endian = "little")]
/// assert_eq!(UserReg::write_index(&argument), 7);
/// # Ok::<(), ipc_proto::types::TracepointFormatError>(())
/// ```
///
/// `linux/user_events.h`, since Linux 6.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UserReg {
    /// The bit that the kernel sets: 0 to 31 in 4 bytes, 0 to 63 in 8 bytes.
    pub enable_bit: u8,
    /// The number of bytes at the address: 4 or 8. The address is a multiple of this number.
    pub enable_size: u8,
    /// Flags: 0, because the tracepoints of .NET end with their last user.
    pub flags: u16,
    /// The address of an integer with the bit. A process can use each bit only once.
    pub enable_addr: u64,
    /// The address of [`TracepointFormat::as_c_str`](ipc_proto::types::TracepointFormat::as_c_str), which the kernel
    /// reads only during the ioctl.
    pub name_args: u64,
}

/// The end of a registration: `struct user_unreg` of the kernel, the argument of the ioctl [`UserUnreg::IOCTL`].
///
/// ```text
///  0      4             5          6          8
/// | size | disable bit | reserved | reserved | disable addr |
///   u32    u8            u8 = 0     u16 = 0    u64             in the byte order of the system
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UserUnreg {
    /// The [bit](UserReg::enable_bit) of the registration.
    pub disable_bit: u8,
    /// The [address](UserReg::enable_addr) of the registration.
    pub disable_addr: u64,
}

impl UserReg {
    /// `DIAG_IOCSREG`, on the architecture for which this crate is compiled.
    pub const IOCTL: u32 = ioctl(READ | WRITE, 0);
    /// The length of the argument.
    pub const LEN: usize = 28;
    /// The bit that .NET uses, of a `u32`.
    pub const ENABLE_BIT: u8 = 31;

    /// Creates the registration that .NET uses.
    #[must_use]
    pub const fn new(enable_addr: u64, name_args: u64) -> Self {
        Self { enable_bit: Self::ENABLE_BIT, enable_size: 4, flags: 0, enable_addr, name_args }
    }

    /// Returns the argument of the ioctl.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let Self { enable_bit, enable_size, flags, enable_addr, name_args } = *self;
        let mut bytes = [0; Self::LEN];
        let mut w = Writer::new(&mut bytes);
        w.bytes(&size(Self::LEN));
        w.bytes(&[enable_bit, enable_size]);
        w.bytes(&flags.to_ne_bytes());
        w.bytes(&enable_addr.to_ne_bytes());
        w.bytes(&name_args.to_ne_bytes());
        bytes
    }

    /// Returns the write index, which the ioctl has written into its argument.
    #[must_use]
    pub const fn write_index(argument: &[u8; Self::LEN]) -> u32 {
        let [.., a, b, c, d] = *argument;
        u32::from_ne_bytes([a, b, c, d])
    }

    /// Returns the end of this registration.
    #[must_use]
    pub const fn unreg(&self) -> UserUnreg {
        UserUnreg { disable_bit: self.enable_bit, disable_addr: self.enable_addr }
    }
}

impl UserUnreg {
    /// `DIAG_IOCSUNREG`, on the architecture for which this crate is compiled.
    pub const IOCTL: u32 = ioctl(WRITE, 2);
    /// The length of the argument.
    pub const LEN: usize = 16;

    /// Returns the argument of the ioctl.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let mut w = Writer::new(&mut bytes);
        w.bytes(&size(Self::LEN));
        w.bytes(&[self.disable_bit, 0, 0, 0]);
        w.bytes(&self.disable_addr.to_ne_bytes());
        bytes
    }
}

/// Returns the first field: the size of the structure.
const fn size(len: usize) -> [u8; 4] {
    // The cast is exact, because a structure is far shorter than 4 GB.
    #[allow(clippy::cast_possible_truncation, reason = "a length of this file")]
    (len as u32).to_ne_bytes()
}

/// Whether the architecture has other bits for the direction of an ioctl, and fewer bits for the size.
const OLD: bool = cfg!(any(
    target_arch = "mips",
    target_arch = "mips64",
    target_arch = "mips32r6",
    target_arch = "mips64r6",
    target_arch = "powerpc",
    target_arch = "powerpc64",
    target_arch = "sparc",
    target_arch = "sparc64",
));
/// The kernel writes the argument.
const READ: u32 = if OLD { 1 << 30 } else { 1 << 31 };
/// The kernel reads the argument.
const WRITE: u32 = if OLD { 1 << 31 } else { 1 << 30 };

/// Returns the number of an ioctl of `user_events`. The number contains the size of a pointer, because the kernel's
/// header declares a pointer to the structure as the argument.
const fn ioctl(direction: u32, number: u32) -> u32 {
    let pointer = usize::BITS / u8::BITS;
    direction | (pointer << 16) | ((b'*' as u32) << 8) | number
}
