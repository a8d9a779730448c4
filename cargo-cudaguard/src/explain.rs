//! `explain`: a finding at length.

use std::fmt::Write as _;
use std::process::ExitCode;

use cudaguard::finding::Code;

use crate::report::{self, Stop};

pub(crate) fn run(code: Option<&str>) -> Result<ExitCode, Stop> {
    let Some(text) = code else {
        let mut list = String::new();
        for code in Code::ALL {
            let _ = writeln!(list, "{code}  {}", code.title());
        }
        return report::result(&list).map(|()| ExitCode::SUCCESS);
    };
    let code: Code = text.parse().map_err(|()| {
        Stop::no_look(format_args!(
            "`{text}` is not a finding's code: codes are CG and three digits, and `cargo cudaguard explain` lists them"
        ))
    })?;
    let mut page = format!("{code}: {} ({} unless the policy says otherwise)\n\n", code.title(), code.severity());
    for paragraph in code.explanation().lines() {
        page.push_str(&wrapped(paragraph, 100));
        page.push('\n');
    }
    report::result(&page).map(|()| ExitCode::SUCCESS)
}

/// The paragraph, broken at blanks into lines of at most `width` characters.
fn wrapped(paragraph: &str, width: usize) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in paragraph.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_are_broken_at_blanks_only() {
        assert_eq!(super::wrapped("one two three", 7), "one two\nthree");
        assert_eq!(super::wrapped("unbreakable word", 4), "unbreakable\nword");
    }
}
