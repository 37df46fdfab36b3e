//! The names in the symbols of programs that were compiled ahead of time (NativeAOT).
//!
//! The compiler writes `_` for each character that is no letter or digit, and the assembly before the namespace. So a
//! symbol can have several meanings: the known forms are undone, and other symbols stay as they are.
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The assembly and the name of a type or method.
type NativeName = (String, String);

/// The depth of type arguments that is read.
const MAX_DEPTH: u32 = 32;

/// The assembly of the basic types.
const CORE: &str = "System.Private.CoreLib";

/// Returns the assembly and the name of the type whose method table has this symbol; `None` if its form is not known.
/// `program` is the name of the program, which its own assembly has too.
pub(crate) fn type_of_symbol(symbol: &str, program: &str) -> Option<NativeName> {
    let mangled = symbol.strip_prefix("_ZTV")?.trim_start_matches(|digit: char| digit.is_ascii_digit());
    type_name(mangled, program, MAX_DEPTH)
}

/// Returns the assembly of the method with this symbol, and its name with its type.
pub(super) fn method_of_symbol(symbol: &str, program: &str) -> Option<NativeName> {
    let symbol = symbol.strip_prefix("unbox_").unwrap_or(symbol);
    let (of_type, method) = split_method(symbol)?;
    let (module, mut name) = type_name(of_type, program, MAX_DEPTH)?;
    let (method, arguments) = match method.split_once('<') {
        Some((method, rest)) => (method, Some(rest.strip_suffix('>')?)),
        None => (method, None),
    };
    name.push('.');
    name.push_str(&generated_method(method));
    if let Some(list) = arguments {
        push_arguments(&mut name, &arguments_of(list, program), program, MAX_DEPTH)?;
    }
    Some((module, name))
}

/// Splits a symbol between its type and its method: at `__` outside of type arguments.
fn split_method(symbol: &str) -> Option<(&str, &str)> {
    let outer = symbol.split_once('<').map_or(symbol, |(head, _)| head);
    let place = outer.find("__").unwrap_or(outer.len());
    let generated = generated_type(outer.get(place..)?).map_or(0, |(_, len)| len);
    let place = place.saturating_add(generated);
    let mut depth = 0_u32;
    symbol.get(place..)?.char_indices().find_map(|(at, character)| {
        match character {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let (of_type, rest) = symbol.split_at_checked(place.saturating_add(at))?;
        let method = rest.strip_prefix("__").filter(|method| depth == 0 && !method.is_empty())?;
        Some((of_type, method))
    })
}

/// Returns the name of a type that the compiler made, at the start of a text, and its length there. Such a name begins
/// with `<`, so that it follows `__` in a symbol: closures, and state machines of methods.
fn generated_type(text: &str) -> Option<(String, usize)> {
    if let Some(rest) = text.strip_prefix("___c") {
        let class =
            rest.strip_prefix("__DisplayClass").and_then(|rest| rest.split('<').next()?.split("__").next());
        let class = class.map_or_else(String::new, |numbers| format!("__DisplayClass{numbers}"));
        let is_end = !class.is_empty() || rest.is_empty() || rest.starts_with(['_', '<']);
        return is_end.then(|| (format!("<>c{class}"), "___c".len().saturating_add(class.len())));
    }
    let (name, rest) =
        text.strip_prefix("__")?.split_once("_d__").filter(|(name, _)| !name.contains("__"))?;
    let number = rest.split(|c: char| !c.is_ascii_digit()).next().filter(|number| !number.is_empty())?;
    let len = "___d__".len().saturating_add(name.len()).saturating_add(number.len());
    Some((format!("<{name}>d__{number}"), len))
}

/// Returns the name of a method: that of a constructor, a lambda or a local function as the compiler wrote it.
fn generated_method(method: &str) -> String {
    let plain = |name: &str| match name {
        "_ctor" => ".ctor".to_owned(),
        "_cctor" => ".cctor".to_owned(),
        name => name.to_owned(),
    };
    let generated = method.strip_prefix('_').and_then(|rest| {
        if let Some((owner, number)) = rest.rsplit_once("_b__") {
            return Some(format!("<{}>b__{number}", plain(owner)));
        }
        let (owner, function) = rest.split_once("_g__")?;
        let name = function.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
        let numbers = function.strip_prefix(name)?.strip_prefix('_')?;
        Some(format!("<{}>g__{name}|{numbers}", plain(owner)))
    });
    generated.unwrap_or_else(|| plain(method))
}

fn type_name(mangled: &str, program: &str, depth: u32) -> Option<NativeName> {
    let depth = depth.checked_sub(1)?;
    let mangled = mangled.strip_prefix("Boxed_").unwrap_or(mangled);
    if let Some(element) = mangled.strip_prefix("__Array<") {
        let (module, name) = type_name(element.strip_suffix('>')?, program, depth)?;
        return Some((module, format!("{name}[]")));
    }
    if let Some(element) = mangled.strip_prefix("__MDArray<") {
        let (element, rank) = element.strip_suffix('>')?.rsplit_once(',')?;
        let rank: usize = rank.parse().ok().filter(|rank| (1..=32).contains(rank))?;
        let (module, name) = type_name(element, program, depth)?;
        return Some((module, format!("{name}[{}]", ",".repeat(rank.saturating_sub(1)))));
    }
    if let Some(name) = primitive(mangled) {
        return Some((CORE.to_owned(), format!("System.{name}")));
    }
    let (head, list) = match mangled.split_once('<') {
        Some((head, rest)) => (head, Some(rest.strip_suffix('>')?)),
        None => (mangled, None),
    };
    let arguments = list.map_or_else(Vec::new, |list| arguments_of(list, program));
    let (module, rest) = assembly(head, program)?;
    let place = rest.find("__").unwrap_or(rest.len());
    let (outer, generated) = match generated_type(rest.get(place..)?) {
        Some((name, _)) => (rest.get(..place)?, Some(name)),
        None => (rest, None),
    };
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (arity, parts): (Vec<&str>, Vec<&str>) = outer.split('_').partition(is_number);
    let stated = arity.iter().filter_map(|part| part.parse().ok()).fold(0_usize, usize::saturating_add);
    let mut name = parts.join(".");
    match generated {
        Some(generated) => name.push_str(&format!("+{generated}")),
        None if !arguments.is_empty() && stated != arguments.len() => return None,
        None => {}
    }
    if !arguments.is_empty() {
        push_arguments(&mut name, &arguments, program, depth)?;
    }
    Some((module, name))
}

fn push_arguments(name: &mut String, arguments: &[&str], program: &str, depth: u32) -> Option<()> {
    for (place, argument) in arguments.iter().enumerate() {
        name.push(if place == 0 { '<' } else { ',' });
        name.push_str(&type_name(argument, program, depth)?.1);
    }
    name.push('>');
    Some(())
}

fn primitive(mangled: &str) -> Option<&str> {
    match mangled {
        "Bool" => Some("Boolean"),
        "Int8" => Some("SByte"),
        "UInt8" => Some("Byte"),
        "System___Canon" => Some("__Canon"),
        "Int16" | "UInt16" | "Int32" | "UInt32" | "Int64" | "UInt64" | "IntPtr" | "UIntPtr" | "Char"
        | "Single" | "Double" | "Object" | "String" | "Void" => Some(mangled),
        _ => None,
    }
}

/// Splits type arguments at each `__` that a type follows.
fn arguments_of<'a>(list: &'a str, program: &str) -> Vec<&'a str> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0_usize, 0_u32);
    for (place, character) in list.char_indices() {
        match character {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            '_' if depth == 0 && place > start => {
                let Some(rest) = list.get(place..).and_then(|rest| rest.strip_prefix("__")) else { continue };
                if begins_type(rest, program) {
                    found.extend(list.get(start..place));
                    start = place.saturating_add(2);
                }
            }
            _ => {}
        }
    }
    found.extend(list.get(start..));
    found
}

fn begins_type(rest: &str, program: &str) -> bool {
    if ["__Array<", "__MDArray<", "System___Canon"].iter().any(|begin| rest.starts_with(begin)) {
        return true;
    }
    let end = rest.find("__").into_iter().chain(rest.find('<')).min().unwrap_or(rest.len());
    rest.get(..end).is_some_and(|head| primitive(head).is_some() || assembly(head, program).is_some())
}

/// Splits off the assembly: the program, `S_P_…` (System.Private), or one whose first word begins the namespace again.
fn assembly<'a>(head: &'a str, program: &str) -> Option<(String, &'a str)> {
    let is_same =
        |(symbol, name): (char, char)| symbol == name || symbol == '_' && !name.is_ascii_alphanumeric();
    if head.get(..program.len()).is_some_and(|start| start.chars().zip(program.chars()).all(is_same)) {
        if let Some(rest) = head.get(program.len()..).and_then(|rest| rest.strip_prefix('_')) {
            return Some((program.to_owned(), rest));
        }
    }
    let private = head.strip_prefix("S_P_");
    let body = private.unwrap_or(head);
    let first = body.split('_').next().filter(|first| !first.is_empty())?;
    let namespaces = ["System", "Internal", "Microsoft", "Interop"].into_iter();
    let begins =
        namespaces.filter(|begin| private.is_some() || first == *begin || first == "System").chain([first]);
    // A type without a namespace is the last word.
    let words = format!("{body}_");
    let place = begins.filter_map(|begin| words.find(&format!("_{begin}_"))).min()?;
    let (module, rest) = body.split_at_checked(place)?;
    let prefix = if private.is_some() { "System.Private." } else { "" };
    Some((format!("{prefix}{}", module.replace('_', ".")), rest.get(1..)?))
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::{method_of_symbol, type_of_symbol};

    #[test]
    fn types() {
        for (symbol, module, name) in [
            ("_ZTV21Workload_LabHeap_Node", "Workload", "LabHeap.Node"),
            ("_ZTV14__Array<UInt8>", "System.Private.CoreLib", "System.Byte[]"),
            ("_ZTV18__MDArray<Int32,2>", "System.Private.CoreLib", "System.Int32[,]"),
            ("_ZTV12Boxed_Double", "System.Private.CoreLib", "System.Double"),
            (
                "_ZTV83S_P_CoreLib_System_Collections_Generic_Dictionary_2<String__Workload_LabHeap_Entry>",
                "System.Private.CoreLib",
                "System.Collections.Generic.Dictionary<System.String,LabHeap.Entry>",
            ),
            (
                "_ZTV44Workload_LabHeap_Build___c__DisplayClass21_0",
                "Workload",
                "LabHeap.Build+<>c__DisplayClass21_0",
            ),
            (
                "_ZTV93System_Diagnostics_DiagnosticSource_System_Diagnostics_Metrics_Meter___c__DisplayClass42_0_1<Double>",
                "System.Diagnostics.DiagnosticSource",
                "System.Diagnostics.Metrics.Meter+<>c__DisplayClass42_0_1<System.Double>",
            ),
            ("_ZTV30Workload_Work__Activity_d__7", "Workload", "Work+<Activity>d__7"),
        ] {
            assert_eq!(type_of_symbol(symbol, "Workload"), Some((module.into(), name.into())), "{symbol}");
        }
        assert_eq!(
            type_of_symbol("_ZTV15My_App_Shop_Cart", "My.App"),
            Some(("My.App".into(), "Shop.Cart".into()))
        );
        for symbol in
            ["__GCStaticEEType_01", "_ZTV", "_ZTV9", "_ZTV3Foo", "_ZTV9__Array<", "_ZTV20Workload_A_2<Int32>"]
        {
            assert_eq!(type_of_symbol(symbol, "Workload"), None, "{symbol}");
        }
        let deep = "__Array<".repeat(64) + "Int32" + &">".repeat(64);
        assert_eq!(type_of_symbol(&format!("_ZTV1{deep}"), "Workload"), None);
    }

    #[test]
    fn methods() {
        for (symbol, module, name) in [
            ("Workload_LabHeap_Build__Grow", "Workload", "LabHeap.Build.Grow"),
            ("Workload_LabHeap_Key___ctor", "Workload", "LabHeap.Key..ctor"),
            ("Workload_LabSource___cctor", "Workload", "LabSource..cctor"),
            ("unbox_Int64__CompareTo", "System.Private.CoreLib", "System.Int64.CompareTo"),
            (
                "Workload_LabHeap_Build___c__DisplayClass21_0___Start_b__0",
                "Workload",
                "LabHeap.Build+<>c__DisplayClass21_0.<Start>b__0",
            ),
            ("Workload_CounterSource___c____ctor_b__6_0", "Workload", "CounterSource+<>c.<.ctor>b__6_0"),
            (
                "Workload_Work___c__DisplayClass9_0___Loop_g__Round_1",
                "Workload",
                "Work+<>c__DisplayClass9_0.<Loop>g__Round|1",
            ),
            ("Workload_CounterSource___c___ctor", "Workload", "CounterSource+<>c..ctor"),
            ("Workload_Work__Activity_d__7__MoveNext", "Workload", "Work+<Activity>d__7.MoveNext"),
            (
                "S_P_CoreLib_System_Runtime_CompilerServices_AsyncMethodBuilderCore__Start<Workload_Work__Activity_d__7>",
                "System.Private.CoreLib",
                "System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start<Work+<Activity>d__7>",
            ),
            (
                "S_P_CoreLib_System_Threading_AsyncLocal_1<Bool>__get_Value",
                "System.Private.CoreLib",
                "System.Threading.AsyncLocal<System.Boolean>.get_Value",
            ),
            ("S_P_CoreLib_Interop_Sys__Read", "System.Private.CoreLib", "Interop.Sys.Read"),
            (
                "S_P_CoreLib_Interop___GetExceptionForIoErrno_g__ParentDirectoryExists_17_0",
                "System.Private.CoreLib",
                "Interop.<GetExceptionForIoErrno>g__ParentDirectoryExists|17_0",
            ),
        ] {
            assert_eq!(method_of_symbol(symbol, "Workload"), Some((module.into(), name.into())), "{symbol}");
        }
        for symbol in [
            "_ZN3WKS7gc_heap15mark_object_simple",
            "main",
            "__libc_start_main",
            "a__b",
            "__",
            "",
            "Workload_A__",
        ] {
            assert_eq!(method_of_symbol(symbol, "Workload"), None, "{symbol}");
        }
    }
}
