//! Frames: names, each of which is stored once.
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::place::{at, index};

/// A name. Two addresses in code of the same name have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub(crate) u32);

impl FrameId {
    /// The frame of an address of which nothing is known: `?!?`.
    pub const UNKNOWN: Self = Self(0);
}

const UNKNOWN: &str = "?!?";

/// The texts of frames by their ids.
#[derive(Debug)]
pub(super) struct FrameTexts {
    texts: Vec<Arc<str>>,
    ids: BTreeMap<Arc<str>, u32>,
}

impl Default for FrameTexts {
    fn default() -> Self {
        let mut frames = Self { texts: Vec::new(), ids: BTreeMap::new() };
        frames.add(UNKNOWN);
        frames
    }
}

impl FrameTexts {
    /// Returns the frame of a text.
    pub(super) fn add(&mut self, text: &str) -> FrameId {
        if let Some(id) = self.ids.get(text) {
            return FrameId(*id);
        }
        let id = index(self.texts.len());
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.ids.insert(text, id);
        FrameId(id)
    }

    pub(super) fn text(&self, frame: FrameId) -> &str {
        at(&self.texts, frame.0).map_or(UNKNOWN, |text| text)
    }

    /// Returns the text of a frame, shared.
    pub(super) fn shared(&self, frame: FrameId) -> Arc<str> {
        let text = at(&self.texts, frame.0).or_else(|| self.texts.first());
        text.map_or_else(|| UNKNOWN.into(), Arc::clone)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}
