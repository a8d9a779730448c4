//! `diff`: which machines a new release gains and loses, compared with an old one.

mod compare;
mod markdown;
mod release_facts;
mod text;
mod wording;

use std::process::ExitCode;

use cudaguard::internal::env::Env;
use cudaguard::internal::policy::ReleaseRequirements;

use crate::cli::arguments::{DiffFormat, DiffOptions};
use crate::cli::json_output;
use crate::cli::report::{self, CliError, EXIT_ERROR, REFUSED};
use compare::ReleaseDiff;
use release_facts::ReleaseFacts;

pub(crate) fn run_diff(env: &Env, options: &DiffOptions) -> Result<ExitCode, CliError> {
    let policy = if let Some(path) = &options.policy {
        ReleaseRequirements::from_file(path)?
    } else {
        let found = ReleaseRequirements::for_project(env.current_dir())?;
        found.map(|(_, requirements)| requirements)
    };
    let mut policy = policy.unwrap_or_default();
    policy.allow_loss.extend(&options.allow_loss);
    let (mut old, mut new) = (ReleaseFacts::read(&options.old)?, ReleaseFacts::read(&options.new)?);
    if old.title == new.title {
        (old.title, new.title) = (old.file.clone(), new.file.clone());
    }
    let diff = ReleaseDiff::new(old, new, &policy);
    report::print_result(&match options.format.get() {
        DiffFormat::Text => text::render_text(&diff),
        DiffFormat::Markdown => markdown::render_markdown(&diff),
        DiffFormat::Json => json_output::render(&diff),
    })?;
    Ok(if diff.losses.iter().any(|loss| !loss.allowed) {
        ExitCode::from(REFUSED)
    } else if diff.is_known() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_ERROR)
    })
}
