//! Names of functions for people: in a narrow column, the arguments go first, then the module, then the namespace from
//! the left. The name of the method goes last.
use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

use super::columns::cut_end;
use super::printable::{NAME_LIMIT, printable};

/// A name of the form `module!Namespace.Type.Method(arguments)`, with the places at which it can be cut.
#[derive(Debug)]
pub(crate) struct FunctionName<'n> {
    text: Cow<'n, str>,
    /// The end of the name of the method.
    end: usize,
    /// Where shorter names begin: after the module, then after each namespace and type. The last one is the method.
    starts: Vec<usize>,
}

impl<'n> FunctionName<'n> {
    /// Creates a name without control characters. The state machine `Type+<Name>d__1.MoveNext()` of a method gets the
    /// name of the method and a mark: `Type.Name~`. If `is_exact`, it stays as it is.
    pub(crate) fn new(name: &'n str, is_exact: bool) -> Self {
        let machine = if is_exact { None } else { state_machine(name) };
        let text = match machine {
            Some((type_name, method)) => {
                Cow::Owned(format!("{}.{}~", printable(type_name), printable(method)))
            }
            None => printable(name),
        };
        let end = text.find('(').unwrap_or(text.len());
        let head = text.get(..end).unwrap_or_default();
        // The module is all that is known of a method without a name: `module!?`.
        let module = head.find('!').filter(|_| !head.ends_with("!?"));
        let module = module.map_or(0, |place| place.saturating_add(1));
        let mut starts = vec![module];
        starts.extend(part_starts(head).filter(|start| *start > module));
        Self { text, end, starts }
    }

    /// Returns the longest form that is at most this wide, and has at most [`NAME_LIMIT`] columns.
    pub(crate) fn fit(&self, width: usize) -> String {
        let width = width.min(NAME_LIMIT);
        if self.text.width() <= width {
            return self.text.clone().into_owned();
        }
        let part = |start| self.text.get(start..self.end).unwrap_or_default();
        let (first, rest) = self.starts.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        if let Some(form) = [part(0), part(first)].into_iter().find(|form| form.width() <= width) {
            return form.to_owned();
        }
        // A later start makes a narrower form. A name can have thousands of parts, so the search is binary.
        let is_wide = |start: &usize| part(*start).width() >= width;
        match rest.get(rest.partition_point(is_wide)) {
            Some(start) => format!("…{}", part(*start)),
            None => cut_end(part(self.starts.last().copied().unwrap_or_default()), width),
        }
    }

    /// Returns the whole name.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the places at which the name can be cut, as `fit` does, in units of UTF-16: its end without arguments,
    /// and the starts of shorter names.
    pub(crate) fn utf16_places(&self) -> impl Iterator<Item = usize> + '_ {
        let mut counted = (0, 0);
        let mut start_place = move |start: usize| {
            let (from, places) = counted;
            let part = self.text.get(from..start).unwrap_or_default();
            counted = (start, part.encode_utf16().count().saturating_add(places));
            counted.1
        };
        let end = self.text.get(..self.end).unwrap_or_default().encode_utf16().count();
        core::iter::once(end).chain(self.starts.iter().map(move |start| start_place(*start)))
    }
}

/// Returns a name of a function that is at most this wide, with a mark for state machines.
pub(crate) fn function_name(name: &str, width: usize) -> String {
    FunctionName::new(name, false).fit(width)
}

/// Returns the mark before the name of a function: `*` for code of the program.
pub(crate) const fn mark(is_own: bool) -> char {
    if is_own { '*' } else { ' ' }
}

/// Returns the type and the name of the method whose state machine this is: the compiler names it
/// `Type+<Name>d__1.MoveNext`, and `Type+<<Name>g__Local|1_0>d.MoveNext` for a local function.
fn state_machine(name: &str) -> Option<(&str, &str)> {
    let head = name.split('(').next()?.strip_suffix(".MoveNext")?;
    // The arguments of generic types can contain other state machines.
    let head = head.split_once('[').map_or(head, |(head, _)| head);
    let (type_name, machine) = head.rsplit_once("+<")?;
    let (method, number) = machine.rsplit_once(">d")?;
    let is_number = number.is_empty() || number.starts_with("__") || number.starts_with('`');
    (is_number && !method.is_empty()).then_some((type_name, method))
}

/// Returns where the parts of a name begin, after separators that are not in brackets, if all brackets have an end. A
/// method `.ctor` begins with its own point.
fn part_starts(head: &str) -> impl Iterator<Item = usize> + '_ {
    let count = |brackets: [char; 2]| head.chars().filter(|c| brackets.contains(c)).count();
    let has_ends = count(['[', '<']) == count([']', '>']);
    let (mut depth, mut last) = (0_usize, ' ');
    head.char_indices().filter_map(move |(place, c)| {
        let before = core::mem::replace(&mut last, c);
        match c {
            '[' | '<' => depth = depth.saturating_add(1),
            ']' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_separator = matches!(c, '.' | '+') && before != '.' || c == ':' && before == ':';
        let start = place.saturating_add(1);
        ((depth == 0 || !has_ends) && is_separator && start < head.len()).then_some(start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_columns() {
        let total = "Shop!Contoso.Shop.Cart.Total(class System.String)";
        for (name, width, expected) in [
            (total, 49, total),
            (total, 48, "Shop!Contoso.Shop.Cart.Total"),
            (total, 28, "Shop!Contoso.Shop.Cart.Total"),
            (total, 27, "Contoso.Shop.Cart.Total"),
            (total, 22, "…Shop.Cart.Total"),
            (total, 15, "…Cart.Total"),
            (total, 10, "…Total"),
            (total, 5, "Total"),
            (total, 4, "Tot…"),
            (total, 1, "…"),
            (total, 0, ""),
            ("Shop!Shop.Cart+Row..ctor()", 9, "….ctor"),
            ("Shop!Shop.Cart+Row..ctor()", 10, "…Row..ctor"),
            ("Shop!Shop.List`1[System.Byte].Add(!0)", 6, "…Add"),
            ("libcoreclr.so!Thread::Run(int)", 8, "…Run"),
            ("libx.so!Shop::List<int>::operator<(int)", 12, "…operator<"),
            ("?!?", 80, "?!?"),
            ("Shop!?", 3, "Sh…"),
            ("[threads and async]", 19, "[threads and async]"),
            ("Shop!Shop.Cart.\u{1b}[2J()", 80, "Shop!Shop.Cart.\\u{1b}[2J()"),
        ] {
            assert_eq!(function_name(name, width), expected, "{name} {width}");
        }
    }

    #[test]
    fn state_machines() {
        for (name, expected) in [
            ("Shop!Shop.Cart+<AddAsync>d__3.MoveNext()", "Shop!Shop.Cart.AddAsync~"),
            ("Shop!Shop.Cart`1+<AddAsync>d__3`1[System.__Canon].MoveNext()", "Shop!Shop.Cart`1.AddAsync~"),
            ("Shop!Program+<<Main>$>d__0.MoveNext()", "Shop!Program.<Main>$~"),
            ("Shop!Program+<>c+<<<Main>$>b__0_2>d.MoveNext()", "Shop!Program+<>c.<<Main>$>b__0_2~"),
            ("Shop!Shop.Cart+<<Send>g__Core|83_0>d.MoveNext()", "Shop!Shop.Cart.<Send>g__Core|83_0~"),
            (
                "Shop!Shop.Cart+List`1[Shop.Cart+<A>d__1].MoveNext()",
                "Shop!Shop.Cart+List`1[Shop.Cart+<A>d__1].MoveNext()",
            ),
            ("Shop!Shop.Cart.MoveNext()", "Shop!Shop.Cart.MoveNext()"),
        ] {
            assert_eq!(function_name(name, 80), expected);
            assert_eq!(FunctionName::new(name, true).fit(80), name);
        }
        assert_eq!(function_name("Shop!Shop.Cart+<AddAsync>d__3.MoveNext()", 12), "…AddAsync~");
    }

    /// A name is never wider than its column, has no gap but at its beginning, and keeps its method if that fits.
    #[test]
    fn every_width() {
        let parts =
            ["A", "Shop", "\u{597d}\u{597d}", "List`1[A.B,C+D]", "<>c", ".ctor", "g__F|0_1", "\u{1b}"];
        let mut number = 1_u32;
        for _ in 0..2000 {
            let mut next = |len: usize| {
                number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (number >> 16) as usize % len
            };
            let mut name = if next(3) > 0 { format!("{}!", parts[next(3)]) } else { String::new() };
            for _ in 0..next(5) {
                name += parts[next(parts.len())];
                name += [".", "+", "::"][next(3)];
            }
            name += "Method";
            name += ["", "()", "(class A.B,int32)", "(!!0&)"][next(4)];
            for width in 0..60 {
                let fit = function_name(&name, width);
                assert!(fit.width() <= width, "{name} {width} {fit}");
                assert!(width < 6 || fit.contains("Method"), "{name} {width} {fit}");
                let whole = printable(&name);
                assert!(width < 6 || whole.contains(fit.trim_start_matches('…')), "{name} {width} {fit}");
                assert!(!fit.chars().any(super::super::printable::is_control));
            }
        }
    }
}
