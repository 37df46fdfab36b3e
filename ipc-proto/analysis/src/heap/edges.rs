//! Sequences of numbers that are near each other, in few bytes each.
use alloc::vec::Vec;

/// Appends a number in groups of 7 bits, the lowest first.
pub(super) fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Takes the next number from bytes of [`push_number`].
#[inline]
pub(super) fn next_number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0_u64, 0_u32);
    loop {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7F).checked_shl(shift).unwrap_or(0);
        if *first < 0x80 {
            return Some(number);
        }
        shift = shift.saturating_add(7);
    }
}

/// Returns a difference as a number that is small if the difference is near 0 on either side.
pub(super) const fn zigzag(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

pub(super) const fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ ((number & 1) as i64).wrapping_neg()
}

/// The targets of references in the order of arrival, as differences of their addresses.
///
/// The low three bits of an address are 0 nearly always. They are turned to the top, so that differences are small.
#[derive(Debug, Clone, Default)]
pub(super) struct Targets {
    bytes: Vec<u8>,
    last: u64,
    pub(super) len: u64,
}

impl Targets {
    #[inline]
    pub(super) fn push(&mut self, address: u64) {
        let turned = address.rotate_right(3);
        push_number(&mut self.bytes, zigzag(turned.wrapping_sub(self.last) as i64));
        self.last = turned;
        self.len = self.len.saturating_add(1);
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (mut bytes, mut last) = (self.bytes.as_slice(), 0_u64);
        core::iter::from_fn(move || {
            last = last.wrapping_add(unzigzag(next_number(&mut bytes)?) as u64);
            Some(last.rotate_left(3))
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::Targets;

    #[test]
    fn targets_of_any_address_return() {
        let addresses = [0, 8, 16, 8, u64::MAX, 1, 0x7FFF_FFFF_FFFF_FFF8, 0x8000_0000_0000_0000, 7, 0];
        let mut targets = Targets::default();
        addresses.iter().for_each(|address| targets.push(*address));
        assert_eq!(targets.iter().collect::<Vec<_>>(), addresses);
        let near: Targets = {
            let mut near = Targets::default();
            (0..100).for_each(|n| near.push(0x7F00_0000_0000 + 24 * n));
            near
        };
        assert!(near.size() < 110, "{}", near.size());
    }
}
