//! Stacks that lines of events repeat: the text of one is formatted once, and then copied.
/// The texts of the stacks that were formatted last.
#[derive(Debug)]
pub(crate) struct StackTexts {
    /// The place of a stack is its number modulo the number of places.
    places: Vec<StackText>,
    /// The text of a stack without a number.
    unnumbered: Vec<u8>,
}

#[derive(Debug, Clone, Default)]
struct StackText {
    number: Option<u32>,
    text: Vec<u8>,
}

impl StackTexts {
    /// The number of places. With this many, traces of runtimes have hardly more misses than stacks. A stack of 256
    /// addresses takes 8 KiB in its place.
    const PLACES: usize = 256;

    pub(crate) fn new() -> Self {
        Self { places: vec![StackText::default(); Self::PLACES], unnumbered: Vec::new() }
    }

    /// Returns the text of the stack with this number. `format` appends it, unless that was done before.
    pub(crate) fn get(&mut self, number: Option<u32>, format: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        let place = number.and_then(|number| usize::try_from(number).ok()?.checked_rem(Self::PLACES));
        let text = match place.and_then(|place| self.places.get_mut(place)) {
            Some(known) if known.number == number => return &known.text,
            Some(known) => {
                known.number = number;
                &mut known.text
            }
            None => &mut self.unnumbered,
        };
        text.clear();
        format(text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_formatted_again_if_its_place_has_another() {
        let mut texts = StackTexts::new();
        let other = u32::try_from(StackTexts::PLACES).unwrap() + 1;
        for (number, is_new) in [
            (Some(1), true),
            (Some(1), false),
            (Some(2), true),
            (Some(1), false),
            (Some(other), true),
            (Some(1), true),
            (None, true),
            (None, true),
        ] {
            let mut is_formatted = false;
            let text = texts.get(number, |text| {
                is_formatted = true;
                text.extend(format!("{number:?}").bytes());
            });
            assert_eq!(text, format!("{number:?}").as_bytes());
            assert_eq!(is_formatted, is_new, "{number:?}");
        }
    }
}
