//! The memory for the slots of `IdMap`, `LossCounter` and `Order`.
/// The memory of a collection: slots of a slice or an array that the caller owns, or a `Vec`.
///
/// A collection uses slots from the first on, and overwrites what they contain. A `Vec` (feature `alloc`) grows when it
/// is full. All other memory is fixed, as is a borrowed `Vec` (`&mut Vec`).
///
/// ```
/// use nettrace::{IdMap, Slot};
///
/// let mut slots = [Slot::default(); 2];
/// let mut fixed = IdMap::new(&mut slots);
/// # #[cfg(feature = "alloc")]
/// let mut growing = IdMap::new(Vec::new());
/// for id in 0..100 {
///     assert_eq!(fixed.insert(id, 'a').is_ok(), id < 2);
///     # #[cfg(feature = "alloc")]
///     assert!(growing.insert(id, 'a').is_ok());
/// }
/// ```
pub trait Backing {
    /// A slot.
    type Slot;

    /// Returns the slots.
    fn slots(&self) -> &[Self::Slot];

    /// Returns the slots, to change them.
    fn slots_mut(&mut self) -> &mut [Self::Slot];

    /// Adds slots, and returns whether there are more now.
    fn grow(&mut self) -> bool {
        false
    }
}

/// The slots of a type that is itself a slice of slots.
macro_rules! own_slots {
    () => {
        type Slot = T;

        #[inline]
        fn slots(&self) -> &[T] {
            self
        }

        #[inline]
        fn slots_mut(&mut self) -> &mut [T] {
            self
        }
    };
}

impl<T> Backing for [T] {
    own_slots!();
}

impl<T, const N: usize> Backing for [T; N] {
    own_slots!();
}

impl<B: Backing + ?Sized> Backing for &mut B {
    type Slot = B::Slot;

    #[inline]
    fn slots(&self) -> &[B::Slot] {
        (**self).slots()
    }

    #[inline]
    fn slots_mut(&mut self) -> &mut [B::Slot] {
        (**self).slots_mut()
    }
}

#[cfg(feature = "alloc")]
impl<T: Default> Backing for alloc::vec::Vec<T> {
    own_slots!();

    /// Doubles the number of slots, to 64 at least.
    #[cold]
    fn grow(&mut self) -> bool {
        let len = self.len().saturating_mul(2).max(64);
        self.resize_with(len, T::default);
        true
    }
}
