//! Lists of methods by their types.

/// Methods of the runtime and its libraries: each type with the names of its methods, separated by spaces. A name that
/// ends with `*` stands for all methods of the type that begin so.
#[derive(Debug)]
pub(crate) struct MethodTable(pub(crate) &'static [(&'static str, &'static str)]);

impl MethodTable {
    pub(crate) fn has(&self, MethodName { type_name, method }: MethodName<'_>) -> bool {
        let has = |known: &str| match known.strip_suffix('*') {
            Some(start) => method.starts_with(start),
            None => method == known,
        };
        self.0.iter().any(|(known, methods)| *known == type_name && methods.split_ascii_whitespace().any(has))
    }
}

/// The name of a method without module and arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodName<'n> {
    type_name: &'n str,
    method: &'n str,
}

impl<'n> MethodName<'n> {
    /// Returns the parts of a name of the form `module!Type.Method(args)` or `Type.Method`. A function inside of a
    /// method, as `Type.<Method>g__Part|1_0`, has the name of the method.
    pub(crate) fn of(name: &'n str) -> Option<Self> {
        let head = name.split_once('(').map_or(name, |(head, _)| head);
        let head = head.split_once('!').map_or(head, |(_, method)| method);
        let (type_name, method) = head.rsplit_once("::").or_else(|| head.rsplit_once('.'))?;
        // A constructor is `Type..ctor`.
        let type_name = type_name.strip_suffix('.').unwrap_or(type_name);
        let inside = method.strip_prefix('<').and_then(|rest| rest.split_once(">g__"));
        Some(Self { type_name, method: inside.map_or(method, |(outer, _)| outer) })
    }
}

#[cfg(test)]
mod tests {
    use super::{MethodName, MethodTable};

    #[test]
    fn names_of_methods() {
        let has = |table: &MethodTable, name| MethodName::of(name).is_some_and(|name| table.has(name));
        let table = MethodTable(&[("System.Threading.Thread", "Sleep Poll*"), ("A+B", "*")]);
        for name in [
            "System.Private.CoreLib!System.Threading.Thread.Sleep(int32)",
            "System.Threading.Thread.Sleep",
            "System.Threading.Thread::Sleep(int32)",
            "System.Private.CoreLib!System.Threading.Thread.<PollGC>g__PollGCWorker|67_0()",
            "x!A+B..ctor()",
        ] {
            assert!(has(&table, name), "{name}");
        }
        for name in [
            "System.Threading.Thread.SleepInternal",
            "System.Threading.ThreadX.Sleep",
            "Sleep",
            "x!A.B(System.Threading.Thread.Sleep)",
            "System.Threading.Thread.<Run>g__Sleep|1_0",
            "?!?",
        ] {
            assert!(!has(&table, name), "{name}");
        }
    }
}
