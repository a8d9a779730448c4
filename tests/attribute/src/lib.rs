//! The attribute `#[e2e]`, which registers an end-to-end test under the name of its function.
//!
//! `#[e2e(slow)]` moves the test to the slow layer. `#[e2e(rows)]` registers a function that returns tests.

use proc_macro::{TokenStream, TokenTree};

/// Registers a test. `cudaguard_tests::run` runs it.
#[proc_macro_attribute]
pub fn e2e(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut tokens = item.clone().into_iter();
    let is_fn = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn");
    let name = tokens.by_ref().find(is_fn).and_then(|_| tokens.next());
    let kind = match options.to_string().as_str() {
        "" => Some("Fast"),
        "slow" => Some("Slow"),
        "rows" => Some("Rows"),
        _ => None,
    };
    let code = match (kind, name) {
        (Some(kind), Some(name)) => format!("cudaguard_tests::register!({kind}, {name});"),
        _ => "compile_error!(\"expected #[e2e], #[e2e(slow)] or #[e2e(rows)] and a function\");".to_owned(),
    };
    let Ok(registration) = code.parse::<TokenStream>() else { return item };
    item.into_iter().chain(registration).collect()
}
