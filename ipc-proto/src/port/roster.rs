use core::{fmt, iter, marker::PhantomData};

use crate::Guid;

/// A monitor's list of runtimes, and the newest connection of each.
///
/// A runtime is told by its cookie, not by its process: process ids are used again, and in containers they are the same
/// all over. Its last connection is the live one; an older one that has not been used is dead or about to be.
///
/// `C` is whatever a monitor has for a connection. `S` is any storage of `Option<Entry<C>>`, one for each runtime: an
/// array, a slice, a `Vec`. To find a runtime is to look through them.
///
/// ```
/// use ipc_proto::Guid;
/// use ipc_proto::port::{Arrival, Roster};
///
/// let cookie = Guid(*b"a runtime's name");
/// let mut roster = Roster::new([const { None }; 2]);
/// assert_eq!(roster.arrive(cookie, 42, "connection 1")?, Arrival { first: true, stale: None });
/// assert_eq!(roster.arrive(cookie, 42, "connection 2")?, Arrival { first: false, stale: Some("connection 1") });
/// // The first connection is found to be closed, late: this is not the one that we have.
/// assert_eq!(roster.take_if(&cookie, |connection| *connection == "connection 1"), None);
/// // Each connection carries one command. The runtime is known while it has none, and will be back.
/// assert_eq!(roster.take(&cookie), Some("connection 2"));
/// assert_eq!(roster.get(&cookie).unwrap().connection, None);
/// # Ok::<(), ipc_proto::port::Full<&str>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Roster<C, S> {
    slots: S,
    connections: PhantomData<C>,
}

/// A runtime that a [`Roster`] knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<C> {
    /// The runtime's identity. In a roster there is one entry for each.
    pub cookie: Guid,
    /// Its process, as it said at last; see [`Advertise`](crate::Advertise::process_id).
    pub process_id: u64,
    /// Its newest connection, unless that was taken or hung up.
    pub connection: Option<C>,
}

/// What a connection's arrival has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival<C> {
    /// Whether the runtime was not known: true once, until it is removed.
    pub first: bool,
    /// The connection whose place the new one has taken. Close it.
    pub stale: Option<C>,
}

/// There is no room for another runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full<C> {
    /// The connection that did not get in. If it is closed, the runtime will try again.
    pub connection: C,
}

impl<C> fmt::Display for Full<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no room for another runtime: remove one, or make room for more")
    }
}
impl<C: fmt::Debug> core::error::Error for Full<C> {}

impl<C, S: AsRef<[Option<Entry<C>>]> + AsMut<[Option<Entry<C>>]>> Roster<C, S> {
    /// Nobody yet. What is in the storage is dropped.
    #[must_use]
    pub fn new(mut slots: S) -> Self {
        slots.as_mut().fill_with(|| None);
        Self { slots, connections: PhantomData }
    }

    /// A runtime has connected, and has said who it is.
    ///
    /// # Errors
    /// [`Full`], which hands the connection back. Nothing is changed then. A runtime that is known always finds its place.
    pub fn arrive(&mut self, cookie: Guid, process_id: u64, connection: C) -> Result<Arrival<C>, Full<C>> {
        if let Some(entry) = self.find(&cookie) {
            entry.process_id = process_id;
            return Ok(Arrival { first: false, stale: entry.connection.replace(connection) });
        }
        let Some(free) = self.slots.as_mut().iter_mut().find(|slot| slot.is_none()) else {
            return Err(Full { connection });
        };
        *free = Some(Entry { cookie, process_id, connection: Some(connection) });
        Ok(Arrival { first: true, stale: None })
    }

    /// Takes the runtime's connection out, to send a command over it. The runtime stays known.
    pub fn take(&mut self, cookie: &Guid) -> Option<C> {
        self.take_if(cookie, |_| true)
    }

    /// Takes the runtime's connection out if it is this one: so that a hang-up of an older one, seen late, does not cost
    /// the newer.
    pub fn take_if(&mut self, cookie: &Guid, is_it: impl FnOnce(&C) -> bool) -> Option<C> {
        self.find(cookie)?.connection.take_if(|connection| is_it(connection))
    }

    /// Forgets a runtime. If it connects again, it is a new one.
    pub fn remove(&mut self, cookie: &Guid) -> Option<Entry<C>> {
        let of_it = |slot: &&mut Option<Entry<C>>| slot.as_ref().is_some_and(|entry| entry.cookie == *cookie);
        self.slots.as_mut().iter_mut().find(of_it)?.take()
    }

    /// What is known of a runtime.
    #[must_use]
    pub fn get(&self, cookie: &Guid) -> Option<&Entry<C>> {
        self.iter().find(|entry| entry.cookie == *cookie)
    }

    /// The runtime's connection, where it stands.
    pub fn connection_mut(&mut self, cookie: &Guid) -> Option<&mut C> {
        self.find(cookie)?.connection.as_mut()
    }

    /// The runtimes, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<C>> {
        self.slots.as_ref().iter().flatten()
    }

    /// How many runtimes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For how many runtimes there is room.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.as_ref().len()
    }

    fn find(&mut self, cookie: &Guid) -> Option<&mut Entry<C>> {
        self.slots.as_mut().iter_mut().flatten().find(|entry| entry.cookie == *cookie)
    }
}

impl<C, S: Extend<Option<Entry<C>>>> Roster<C, S> {
    /// Makes room for so many more runtimes, in storage that can grow.
    ///
    /// ```
    /// use ipc_proto::Guid;
    /// use ipc_proto::port::{Full, Roster};
    ///
    /// let mut roster = Roster::new(Vec::new());
    /// let Err(Full { connection }) = roster.arrive(Guid::NIL, 42, "a connection") else { unreachable!() };
    /// roster.grow(16);
    /// assert!(roster.arrive(Guid::NIL, 42, connection).is_ok());
    /// ```
    pub fn grow(&mut self, more: usize) {
        self.slots.extend(iter::repeat_with(|| None).take(more));
    }
}
