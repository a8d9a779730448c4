//! `check`: the toolchain judged, nothing built.

use std::ffi::OsString;
use std::process::ExitCode;

use cudaguard::finding::Finding;
use cudaguard::json::{Value, array, object};

use crate::cargo::order;
use crate::config::Config;
use crate::guards::{Judged, Order};
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
            ("findings", array(findings.iter().map(Finding::to_json))),
        ]);
        report::result(&format!("{}\n", value.pretty()))?;
        return Ok(status);
    }
    report::findings(&findings);
    let mut text = String::new();
    for (line, _) in &packages {
        text.push_str(line);
        text.push('\n');
    }
    report::result(&text)?;
    Ok(status)
}

/// What a package is built with: in a line, and as JSON.
fn describe(order: &Order<'_>, judged: &Judged) -> (String, Value) {
    let toolchain = &judged.toolchain;
    let mut value = object([
        ("name", order.component.name.as_str().into()),
        ("version", order.component.version.as_str().into()),
        ("target", order.target.into()),
        ("profile", order.profile.into()),
    ]);
    let mut line = format!("{} for {}, {}: ", order.component, order.target, order.profile);
    let mut parts = Vec::new();
    if let Some(toolkit) = toolchain.toolkit() {
        parts.push(format!("CUDA {} ({})", toolkit.value, toolkit.source));
        let about = [("version", toolkit.value.to_string().into()), ("source", toolkit.source.into())];
        value.put("toolkit", Some(object::<&str>(about)));
    }
    if let Some(version) = toolchain.cudnn_version() {
        let source = toolchain.cudnn_headers_used().map(|headers| headers.path.display().to_string());
        parts.push(format!("cuDNN {version} ({})", source.as_deref().unwrap_or_default()));
        let mut about = object([("version", Value::from(version.to_string()))]);
        about.put("source", source);
        value.put("cudnn", Some(about));
    }
    let archs: Vec<String> = toolchain.declared().iter().map(ToString::to_string).collect();
    if !archs.is_empty() {
        parts.push(archs.join(" "));
        value.put("archs", Some(array(archs)));
    }
    if let Some(compiler) = toolchain.host_compiler() {
        parts.push(compiler.clone());
        value.put("host_compiler", Some(compiler));
    }
    value.put("policy", judged.policy.path.as_ref().map(|path| path.display().to_string()));
    line.push_str(&if parts.is_empty() { "no CUDA toolkit".to_owned() } else { parts.join(", ") });
    (line, value)
}
