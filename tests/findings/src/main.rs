//! `cargo findings`: writes the files that are made from the table of findings, and names those that changed.

use std::process::ExitCode;

fn main() -> ExitCode {
    for (name, text) in cudaguard_findings::read().written() {
        let path = cudaguard_findings::workspace().join(name);
        if std::fs::read_to_string(&path).is_ok_and(|kept| kept == text) {
            continue;
        }
        if let Err(error) = std::fs::write(&path, text) {
            eprintln!("error: {}: {error}", path.display());
            return ExitCode::from(2);
        }
        println!("{name}");
    }
    ExitCode::SUCCESS
}
