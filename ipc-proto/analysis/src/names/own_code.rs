//! Whether a method belongs to the program, or to the framework and the runtime.
use alloc::string::String;
use alloc::vec::Vec;

use crate::event::name_list;

/// Decides which methods belong to the program.
///
/// Without patterns, these do not belong to it: methods in a module or a namespace of .NET or of Microsoft's libraries
/// (`System`, `Microsoft.Extensions` and others), native code, code that is generated at run time, addresses without a
/// name, the names of events, and `[…]`, which stands for other frames. All others do, also those of other libraries.
/// If the trace states the file of a module, [`Names`](crate::names::Names) leave out the modules in the folder of an
/// installed framework, and do not look at the namespaces in the others.
///
/// With patterns, only methods that one of them describes belong to the program. A pattern is the start of a module, or
/// of a method with its namespace and type, and ends with a whole word: `Shop` is the start of `Shop.Cart.Total`, and
/// not that of `Shopping.List`. After a `*`, the word can continue: `Shop*`.
///
/// ```
/// use nettrace_analysis::OwnCode;
///
/// let code = OwnCode::default();
/// assert!(code.owns("app!Shop.Cart.Total(int32)"));
/// assert!(!code.owns("System.Private.CoreLib!System.String.Concat(class System.String)"));
/// assert!(!code.owns("app!?"));
///
/// let code = OwnCode::new(["Shop.Cart".to_owned()]);
/// assert!(code.owns("app!Shop.Cart.Total(int32)") && code.owns("Shop.Cart+Row..ctor"));
/// assert!(!code.owns("app!Shop.Cartography.Draw()"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct OwnCode {
    patterns: Vec<String>,
}

/// The first words of modules of .NET.
const MODULES: &[&str] = &name_list! {
    System mscorlib netstandard WindowsBase PresentationCore PresentationFramework dynamicClass
};
/// The type of code that is generated at run time, which has the module of its caller.
const DYNAMIC: &str = "dynamicClass";
/// A part of the names of types in source files that generators of the compiler write, as .NET has for routes and regular
/// expressions: `<RegexGenerator_g>F0A1B2…__Words`.
const GENERATED: &str = "_g>F";
/// The first words of namespaces and types of .NET.
const TYPES: &[&str] = &["System", "Internal", "Interop", "MS", "FxResources"];
/// The words after `Microsoft.` of the modules and namespaces of .NET and of Microsoft's libraries. Programs can begin
/// with `Microsoft`, too.
const MICROSOFT: &[&str] = &name_list! {
    ApplicationInsights AspNet AspNetCore Azure Bcl Build CSharp CodeAnalysis Data Diagnostics DotNet EntityFrameworkCore
    Extensions FSharp IO Identity IdentityModel Internal JSInterop NET NETCore Net OData OpenApi SqlServer VisualBasic
    VisualStudio Win32 Windows WindowsAzure WindowsDesktop
};

impl OwnCode {
    /// Creates a rule with these patterns.
    #[must_use]
    pub fn new(patterns: impl IntoIterator<Item = String>) -> Self {
        Self { patterns: patterns.into_iter().collect() }
    }

    /// Returns whether a method belongs to the program. Its name has the form `module!Type.Method(args)`, or is short:
    /// `Type.Method`.
    #[must_use]
    pub fn owns(&self, method: &str) -> bool {
        self.owns_at(method, None)
    }

    /// Returns whether a method belongs to the program. `of_framework` states whether the file of its module is in the
    /// folder of a framework, if its place is known: then the namespace does not count, which a program can choose.
    pub(super) fn owns_at(&self, method: &str, of_framework: Option<bool>) -> bool {
        // The module can contain no `!`, but the arguments of the method can.
        let head = method.split('(').next().unwrap_or_default();
        let (module, name) = head.split_once('!').unwrap_or(("", head));
        if name == "?" || head.starts_with('[') {
            return false;
        }
        if !self.patterns.is_empty() {
            return self.patterns.iter().any(|pattern| begins(module, pattern) || begins(name, pattern));
        }
        let is_native = module.ends_with(".so") || module.contains(".so.") || module.ends_with(".dylib");
        let has_word = |text: &str, words: &[&str]| {
            let of_microsoft = text.strip_prefix("Microsoft.");
            words.iter().any(|word| begins(text, word))
                || of_microsoft.is_some_and(|rest| MICROSOFT.iter().any(|word| begins(rest, word)))
        };
        let is_generated = begins(name, DYNAMIC) || name.contains(GENERATED);
        let of_framework = of_framework.unwrap_or_else(|| has_word(name, TYPES));
        // The name of an event is not code: `EventName: Provider/Event`.
        !(is_native || is_generated || of_framework || has_word(module, MODULES) || name.contains(": "))
    }
}

/// Returns whether a text begins with a pattern that ends with a whole word, or with `*`.
fn begins(text: &str, pattern: &str) -> bool {
    if let Some(start) = pattern.strip_suffix('*') {
        return text.starts_with(start);
    }
    let rest = text.strip_prefix(pattern);
    rest.is_some_and(|rest| {
        pattern.ends_with('.') || !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::OwnCode;

    #[test]
    fn framework() {
        let code = OwnCode::default();
        for method in [
            "System.Private.CoreLib!System.Threading.Thread.Sleep(int32)",
            "System.Private.CoreLib!Interop+Sys.Read(class Handle)",
            "System.Private.CoreLib!System.Runtime.AsyncBox`1[System.__Canon,Shop.Cart+<Add>d__1].MoveNext()",
            "Microsoft.AspNetCore.Server.Kestrel.Core!Microsoft.AspNetCore.Server.Http1Connection.Start()",
            "Internal.Runtime.X.Y",
            "Interop+Sys.Read",
            "dynamicClass!IL_STUB_PInvoke(int)",
            "libcoreclr.so!Thread::Run()",
            "libc.so.6!read",
            "?!?",
            "Shop!?",
            "EventName: Shop/Start",
            "[threads and async]",
            "System",
        ] {
            assert!(!code.owns(method), "{method}");
        }
    }

    #[test]
    fn program() {
        let code = OwnCode::default();
        for method in [
            "OrderService!Contoso.Orders.AuditTrail.Append(class System.String)",
            "Shop!Program.<Main>$(class System.String[])",
            "Contoso.Orders.PaymentGateway+<ConfirmAsync>d__3.MoveNext",
            "Web!Microsoft.eShopWeb.Web.Catalog.Get()",
            "Microsoft.eShopWeb!Program.Main",
            "Systematic!Systematic.Run()",
            "Newtonsoft.Json!Newtonsoft.Json.JsonConvert.SerializeObject(class System.Object)",
        ] {
            assert!(code.owns(method), "{method}");
        }
    }

    #[test]
    fn places_of_modules() {
        let code = OwnCode::default();
        for method in
            ["Shop!Internal.Stock.Get()", "Shop!System.Linq.Extra.Sum()", "Shop!Interop+Prices.Read()"]
        {
            assert!(code.owns_at(method, Some(false)), "{method}");
            assert!(!code.owns_at(method, Some(true)) && !code.owns(method), "{method}");
        }
        for method in [
            "Shop!dynamicClass.IL_STUB_PInvoke(int)",
            "Shop!System.Text.RegularExpressions.Generated.<RegexGenerator_g>F0A__Words.TryMatch()",
            "System.Private.CoreLib!System.String.Concat()",
        ] {
            assert!(!code.owns_at(method, Some(false)), "{method}");
        }
        let code = OwnCode::new(["System.Linq".into()]);
        assert!(code.owns_at("System.Linq!System.Linq.Enumerable.Sum()", Some(true)));
    }

    #[test]
    fn patterns() {
        let code = OwnCode::new(["Contoso", "Shop.Ca*", "System.Net."].map(Into::into));
        for method in [
            "x!Contoso.Orders.A.B()",
            "Contoso!Other.A.B()",
            "Shop.Cart.Add",
            "System.Net.Http.HttpClient.Send",
        ] {
            assert!(code.owns(method), "{method}");
        }
        for method in
            ["x!ContosoShop.A.B()", "x!Shop.List.Add()", "Contoso!?", "System.NetX.A", "y!A.B(Contoso)"]
        {
            assert!(!code.owns(method), "{method}");
        }
    }
}
