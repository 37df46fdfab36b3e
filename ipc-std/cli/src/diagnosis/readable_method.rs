//! Names of methods as the source code has them.

/// Returns the short name of a method as its source code has it. A compiler gives async methods, iterators and lambdas
/// names of their own: `Cart+<AddAsync>d__3.MoveNext` is `Cart.AddAsync`, and `Cart+<>c.<Sort>b__0` is `Cart.Sort`.
pub(super) fn readable(method: &str) -> String {
    let Some((owner, generated)) = method.split_once("+<") else { return method.to_owned() };
    // A closure has no name of its own: `<>c.<Sort>b__0`, `<>c__DisplayClass3_0.<Sort>b__1`.
    let named = match generated.strip_prefix('>') {
        Some(closure) => closure.split_once('<').map(|(_, named)| named),
        None => Some(generated),
    };
    // In a nested state machine of a lambda, the name of the method follows two brackets: `<<Map>b__0>d`.
    let named = named.map(|named| named.trim_start_matches('<'));
    match named.and_then(|named| named.split_once('>')) {
        Some((name, _)) if !name.is_empty() => format!("{owner}.{name}"),
        _ => method.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn compiler_generated_names() {
        for (method, expected) in [
            ("Shop.Cart.Add", "Shop.Cart.Add"),
            ("Shop.Cart+<AddAsync>d__3.MoveNext", "Shop.Cart.AddAsync"),
            ("Shop.Cart+<>c.<Sort>b__0", "Shop.Cart.Sort"),
            ("Shop.Cart+<>c__DisplayClass3_0.<Sort>b__1", "Shop.Cart.Sort"),
            ("Shop.Cart+<>c+<<Map>b__0_1>d.MoveNext", "Shop.Cart.Map"),
            ("Shop.Cart+Row..ctor", "Shop.Cart+Row..ctor"),
            ("Program.<Main>$", "Program.<Main>$"),
            ("Shop.Cart+<", "Shop.Cart+<"),
        ] {
            assert_eq!(readable(method), expected);
        }
    }
}
