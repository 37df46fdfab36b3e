//! The spelling of names: from rows of the runtime, paths of files and symbols of compiled code. Long names are cut.
use alloc::string::String;

use super::rows::MethodNames;
use crate::event::{push_text, split_once};

/// Returns a full name without module and arguments. The name of an unknown method stays as it is.
///
/// ```
/// use nettrace_analysis::names::short_name;
///
/// assert_eq!(short_name("app!Shop.Cart.Total(int32)"), "Shop.Cart.Total");
/// assert_eq!(short_name("app!?"), "app!?");
/// ```
#[must_use]
pub fn short_name(text: &str) -> &str {
    match text.split_once('!') {
        Some((_, name)) if is_method(text) => {
            name.split_once('(').map_or(name, |(name, _)| if name.is_empty() { text } else { name })
        }
        _ => text,
    }
}

/// Returns a short name as the source code has it. A compiler gives asynchronous methods, iterators, lambdas and local
/// functions names of their own. A lambda has the name of its method and its number.
///
/// ```
/// use nettrace_analysis::names::source_name;
///
/// assert_eq!(source_name("Shop.Cart+<AddAsync>d__3.MoveNext"), "Shop.Cart.AddAsync");
/// assert_eq!(source_name("Shop.Cart+<>c.<Sort>b__0_1"), "Shop.Cart.Sort (lambda 0_1)");
/// assert_eq!(source_name("Shop.Cart.<Sort>g__Compare|4_0"), "Shop.Cart.Sort.Compare");
/// assert_eq!(source_name("Shop.Cart.Add"), "Shop.Cart.Add");
/// ```
#[must_use]
pub fn source_name(method: &str) -> String {
    let owner = || method.split_once("+<").or_else(|| method.split_once(".<")).map(|(owner, _)| owner);
    // The method of a closure: `<>c.<Sort>b__0_1`, `<>c__DisplayClass3_0.<Sort>b__1`, `<>c+<<Map>b__0_1>d.MoveNext`.
    let closure = |mark: &str| {
        let (outer, inner) = method.split_once(mark)?;
        // The method of top-level statements is `<Main>$` itself.
        let (start, end) = match outer.strip_suffix(">$") {
            Some(start) => (start, ">$"),
            None => (outer, ""),
        };
        let (_, name) = start.rsplit_once('<')?;
        let open = if end.is_empty() { "" } else { "<" };
        let name = alloc::format!("{}.{open}{name}{end}", owner()?);
        let is_part = |char: char| char.is_alphanumeric() || char == '_';
        Some((name, inner.split(|char| !is_part(char)).next().unwrap_or_default()))
    };
    if let Some((name, number)) = closure(">b__") {
        return alloc::format!("{name} (lambda {number})");
    }
    if let Some((name, function)) = closure(">g__") {
        return alloc::format!("{name}.{function}");
    }
    let Some((owner, generated)) = method.split_once("+<") else { return method.into() };
    if let Some((name, _)) = generated.strip_prefix('<').and_then(|named| named.split_once(">$>d")) {
        return alloc::format!("{owner}.<{name}>$");
    }
    match generated.split_once('>') {
        Some((name, _)) if !name.is_empty() => alloc::format!("{owner}.{name}"),
        _ => method.into(),
    }
}

/// Returns whether a full name has a method.
pub(super) fn is_method(text: &str) -> bool {
    !text.ends_with("!?")
}

/// Returns `Type.Method(args)`; an empty text for a method without a name.
pub(crate) fn method_name(row: &MethodNames<'_>) -> String {
    let mut to = String::new();
    push_method_name(&mut to, row);
    to
}

/// Appends `Type.Method(args)`; nothing for a method without a name.
pub(super) fn push_method_name(to: &mut String, row: &MethodNames<'_>) {
    push_text(to, row.type_name);
    if !row.type_name.is_empty() {
        to.push('.');
    }
    push_text(to, row.name);
    // In a signature, the return type and the calling convention come before the arguments.
    if let (_, Some(arguments)) = split_once(row.signature, b"(") {
        to.push('(');
        push_text(to, arguments);
    }
}

/// The longest name of a module in bytes, which is the limit for the name of a file. The frames of all methods of a
/// module repeat its name.
const MAX_MODULE: usize = 255;

/// The longest name of a method in bytes, with its arguments. In some formats every stack repeats the name.
pub(super) const MAX_METHOD: usize = 4096;

/// Returns the beginning of a name: as many whole characters as fit into `max` bytes.
pub(crate) fn cut(name: &str, max: usize) -> &str {
    if name.len() <= max {
        return name;
    }
    let ends = name.char_indices().map(|(start, char)| start.saturating_add(char.len_utf8()));
    let end = ends.take_while(|end| *end <= max).last().unwrap_or_default();
    name.get(..end).unwrap_or_default()
}

/// Returns the file of a path of Linux or Windows.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns the name of a module by the path of its file: without the folder, `.dll` and `.exe`.
pub(crate) fn module_name(path: &str) -> &str {
    let name = file_name(path);
    let stem = match name.rsplit_once('.') {
        Some((stem, extension))
            if ["dll", "exe"].iter().any(|known| extension.eq_ignore_ascii_case(known)) =>
        {
            stem
        }
        _ => name,
    };
    cut(stem, MAX_MODULE)
}

/// Splits a name of the form `return-type [module] Type::Method(args)[Tier]` into the module and the method.
pub(super) fn split_managed(name: &str) -> Option<(&str, &str)> {
    // In a return type, the name of a module is followed by the name of a type, without a space:
    // `class [System.Runtime]System.String`.
    let mut from = 0;
    let (module, method) = name.match_indices("] ").find_map(|(end, _)| {
        let before = name.get(from..end)?;
        let open = before.rfind('[');
        let start = from.saturating_add(open.unwrap_or_default());
        from = end;
        let is_module = open.is_some() && (start == 0 || name.get(..start)?.ends_with(' '));
        let module = name.get(start.saturating_add(1)..end).filter(|_| is_module)?;
        Some((module, name.get(end..)?.strip_prefix("] ")?))
    })?;
    let method = match method.strip_suffix(']').and_then(|method| method.rsplit_once('[')) {
        Some((method, _tier)) => method,
        None => method,
    };
    (!module.is_empty() && !method.is_empty()).then_some((module, method))
}

#[cfg(test)]
mod tests {
    use super::{file_name, source_name};

    #[test]
    fn file_names_are_those_of_either_system() {
        assert_eq!(file_name(r"C:\app\Shop.dll"), "Shop.dll");
        assert_eq!(file_name("/app/Shop.dll"), "Shop.dll");
    }

    #[test]
    fn names_that_a_compiler_made() {
        for (method, expected) in [
            ("Shop.Cart.Add", "Shop.Cart.Add"),
            ("Shop.Cart+<AddAsync>d__3.MoveNext", "Shop.Cart.AddAsync"),
            ("Shop.Cart`1+<AddAsync>d__3[Shop.A+<B>d__1].MoveNext", "Shop.Cart`1.AddAsync"),
            ("Shop.Cart+<>c.<Sort>b__0", "Shop.Cart.Sort (lambda 0)"),
            ("Shop.Cart+<>c__DisplayClass3_0.<Sort>b__1", "Shop.Cart.Sort (lambda 1)"),
            ("Shop.Cart+<>c+<<Map>b__0_1>d.MoveNext", "Shop.Cart.Map (lambda 0_1)"),
            ("Program+<>c.<<Main>$>b__0_2", "Program.<Main>$ (lambda 0_2)"),
            ("Program+<>c+<<<Main>$>b__0_2>d.MoveNext", "Program.<Main>$ (lambda 0_2)"),
            ("Program.<<Main>$>g__Handle|0_1", "Program.<Main>$.Handle"),
            ("Program+<<<Main>$>g__Handle|0_1>d.MoveNext", "Program.<Main>$.Handle"),
            ("Program+<<Main>$>d__0.MoveNext", "Program.<Main>$"),
            ("Shop.Cart+Row..ctor", "Shop.Cart+Row..ctor"),
            ("Program.<Main>$", "Program.<Main>$"),
            ("Shop.Cart+<", "Shop.Cart+<"),
        ] {
            assert_eq!(source_name(method), expected);
        }
    }
}
