//! A check for the beginning of a Slurm job script, or for its `TaskProlog`.
//!
//! It must not be a `Prolog`: if a Prolog fails, Slurm drains the node and requeues the job, and it runs without a PATH (`SchedMD`,
//! Prolog and Epilog Guide). A failed `TaskProlog` ends only the task. It prints to stderr, because Slurm executes what a
//! `TaskProlog` prints to stdout.
//!
//! Slurm cannot express compute capabilities or drivers: the features of `--constraint` are names of a site. The script
//! therefore queries nvidia-smi on the node (`--query-gpu=compute_cap` since driver 510).

use std::fmt::Write as _;

use cudaguard::internal::sanitize;
use cudaguard::internal::tables;

use super::Inexpressible;
use super::{RequirementsQuery, comment_lines};

/// Prolog scripts have the job's id but no environment of the job; `SLURM_SCRIPT_CONTEXT` names the kind of script.
const HARMLESS: &str = "PATH=${PATH:-/usr/bin:/bin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin\nexport PATH\n\
case ${SLURM_SCRIPT_CONTEXT:-} in\n  prolog_slurmd | prolog_slurmctld | epilog_slurmd | epilog_slurmctld)\n    \
echo \"this check is for a job script or TaskProlog: a failed Prolog drains the node\" >&2; exit 0 ;;\nesac\n";

pub(super) fn write_slurm(asked: &RequirementsQuery<'_>) -> Result<String, Inexpressible> {
    let rows = asked.fit_rows()?;
    let mut heading = asked.comment_heading("Check for a Slurm job script or TaskProlog");
    heading.push("Call it first in the job script, with `|| exit`: sh check.sh || exit. Never use it as Prolog: a Prolog that fails drains the node.".to_owned());
    heading.push("Needs nvidia-smi of driver 510 or newer. Status 0: a GPU of this node is compatible; 1: none is; 2: nvidia-smi fails.".to_owned());
    heading
        .push("Each site defines its own features. The compute capabilities that --constraint must select:".to_owned());
    let mut ccs: Vec<(u8, u8)> = tables::arch_rows().iter().map(|row| row.cc).collect();
    ccs.dedup();
    ccs.retain(|cc| asked.placement.processor != "x86_64" || !tables::is_tegra(*cc));
    for cc in ccs {
        let fit = asked.placement.fit.iter().any(|gpus| gpus.contains(cc));
        if let Some(name) = tables::gpu_examples(cc).first().filter(|_| fit) {
            heading.push(format!("  {} ({name})", tables::dotted_cc(cc)));
        }
    }
    let mut text = String::from("#!/bin/sh\n") + &comment_lines(&heading);
    text.push_str(HARMLESS);
    if !asked.placement.processor.is_empty() {
        let (processor, title) = (&asked.placement.processor, quote_shell(&asked.file_names()));
        let _ = writeln!(
            text,
            "[ \"$(uname -m)\" = {processor} ] || {{ echo \"{title}: is for {processor}\" >&2; exit 1; }}"
        );
    }
    text.push_str("fit() {  # compute capability as 806, the driver's branch\n");
    let mut lines = 0;
    for row in &rows {
        let number = |(major, minor): (u8, u8)| u32::from(major) * 100 + u32::from(minor);
        let mut tests = Vec::new();
        tests.extend(row.from.map(|cc| format!("[ \"$1\" -ge {} ]", number(cc))));
        tests.extend(row.below.map(|cc| format!("[ \"$1\" -lt {} ]", number(cc))));
        if let Some(cuda) = row.cuda {
            // The driver branch must be sufficient for every release; a row without such a branch is skipped.
            let branch = tables::branch_rows().iter().find(|branch| branch.least >= cuda).map(|branch| branch.branch);
            let Some(branch) = branch else { continue };
            tests.push(format!("[ \"$2\" -ge {branch} ]"));
        }
        let _ = writeln!(text, "  {} && return 0", tests.join(" && "));
        lines += 1;
    }
    if lines == 0 {
        return Err(Inexpressible::NoDriver);
    }
    text.push_str("  return 1\n}\n");
    text.push_str("seen=$(nvidia-smi --query-gpu=compute_cap,driver_version --format=csv,noheader) || exit 2\n");
    text.push_str("status=1\nwhile IFS=' ,.' read -r major minor branch rest; do\n");
    text.push_str("  case \"$major$minor$branch\" in *[!0-9]* | '') continue ;; esac\n");
    text.push_str("  fit $((major * 100 + minor)) \"$branch\" && status=0\ndone <<END\n$seen\nEND\n");
    let _ = writeln!(
        text,
        "[ $status = 0 ] || echo \"{}: no GPU of this node is compatible: $seen\" >&2\nexit $status",
        quote_shell(&asked.file_names())
    );
    Ok(text)
}

/// Makes text safe within double quotes of a shell.
fn quote_shell(text: &str) -> String {
    let kept = |c: char| if matches!(c, '"' | '$' | '`' | '\\' | '!') { '_' } else { c };
    sanitize::sanitize_line(text).chars().map(kept).collect()
}
