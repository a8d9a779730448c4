//! `check`: the toolchain judged, nothing built.

use std::ffi::OsString;
use std::process::ExitCode;

use cudaguard::json::{array, object};

use crate::cargo::order;
use crate::config::Config;
use crate::project::{Call, Project};
use crate::report::{self, REFUSED, Stop};

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode, Stop> {
    let call = Call::read(None, arguments);
    let folder = std::env::current_dir().map_err(|error| Stop::no_look(format_args!("no current folder: {error}")))?;
    let config = Config::read(&folder, &call.configs)?;
    let project = Project::of(None, &call, &config)?;
    let variables = config.variables();
    let (mut findings, mut packages) = (Vec::new(), Vec::new());
    for at in &project.selected {
        for target in &project.targets {
            let order = order(&project, &project.members[*at], target);
            let judged = order.judge(&variables).map_err(Stop::no_look)?;
            packages.push(describe(&order, &judged));
            findings.extend(judged.findings);
        }
    }
    let status = if report::refuses(&findings) { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS };
    if call.json {
        let value = object([
            ("packages", array(packages.iter().map(|one| one.1.clone()))),
            ("findings", array(findings.iter().map(cudaguard::finding::Finding::to_json))),
        ]);
        report::result(&format!("{}\n", value.pretty()));
        return Ok(status);
    }
    report::findings(&findings);
    let mut text = String::new();
    for (line, _) in &packages {
        text.push_str(line);
        text.push('\n');
    }
    report::result(&text);
    Ok(status)
}
