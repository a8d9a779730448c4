//! The guard for build systems other than cargo and CMake. `embed` writes the guard from its options, and `seal` checks
//! and seals the file that was linked with it.
//!
//! `embed` stores its options in a facts file next to the guard, in the format of the CMake facts, so that `seal` uses
//! the same options.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::guard::{self, Tool};
use crate::linked::seal;
use crate::pipeline::check_build;
use cudaguard::internal::digest::Digest;
use cudaguard::internal::env::Env;
use cudaguard::internal::files;
use cudaguard::internal::finding::{MessageTemplate, Values};
use cudaguard::internal::guard::check_target;

use crate::cargo::project::absolute_path;
use crate::cli::arguments::{Options, SealArgs};
use crate::cli::platform;
use crate::cli::report::CliError;
use crate::commands::cmake::job::{CmakeJob, target_triple};
use crate::commands::cmake::target_properties::{BY_OPTIONS, HEAD, TargetDescription};
use crate::commands::cmake::{make_rule, make_target, verify_and_seal};

/// Key of the facts line with the reason why there is no guard.
const NO_GUARD: &str = "unguarded";
/// Key of the facts line with the digest of everything that the guard was made of.
const MADE_OF: &str = "made-of";

pub(crate) fn run_embed(env: &Env, options: &Options) -> Result<ExitCode, CliError> {
    let output = absolute_path(&options.output);
    let text_in_c = match output.extension().and_then(OsStr::to_str) {
        Some("o" | "obj") => false,
        Some("c") => true,
        _ => {
            return Err(CliError::operational(format_args!(
                "--output {}: expected an object (guard.o) or a C file (guard.c)",
                options.output.display()
            )));
        }
    };
    let dir = output.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir).map_err(|error| CliError::cannot_write(dir, &error))?;
    let known = facts_of(&output);
    let before = files::read_text(&known).unwrap_or_default();
    let mut facts = options_as_facts(options, dir)?;
    files::write_regular(&known, facts.as_bytes()).map_err(|error| CliError::cannot_write(&known, &error))?;
    let job = CmakeJob::from_facts(TargetDescription::from_options_file(&known)?)?;
    let mut files = Vec::new();
    let made = (|| {
        let inputs = job.build_inputs();
        let judged = check_build(&inputs, &[], env)?;
        files = judged.toolchain.read_files();
        job.report_findings(&judged.findings)?;
        let descriptor = judged.encode_note(&inputs)?;
        let mut unguarded = check_target(inputs.target).err();
        let text = match unguarded {
            None => guard::guard_source(&descriptor, &inputs.component, inputs.target),
            Some(_) => String::new(),
        };
        // The guard of an earlier call keeps its time if nothing has changed, so that a build tool can run `embed` in each
        // build. A changed policy also counts if the guard does not contain the change, because `seal` applies it.
        let digest = made_of(&facts, &text, [judged.policy.path.as_deref(), judged.lock.as_deref()]);
        push_fact(&mut facts, MADE_OF, &digest.to_string())?;
        if before == facts && output.is_file() {
            return write_if_different(&known, &facts);
        }
        if text_in_c {
            files::write_regular(&output, text.as_bytes()).map_err(|error| CliError::cannot_write(&output, &error))?;
        } else {
            let tool = &job.facts.tool;
            unguarded = guard::compile_whole(tool, &descriptor, &inputs.component, inputs.target, &output)?;
        }
        if let Some(why) = unguarded {
            let values = Values::default().with("component", &inputs.component).with("why", &why);
            job.report_findings(
                &inputs.apply_policy(&judged.policy, vec![MessageTemplate::Unguarded.to_finding(&values)]).findings,
            )?;
            push_fact(&mut facts, NO_GUARD, &why.to_string())?;
        }
        write_if_different(&known, &facts)
    })();
    if let Err(stop) = made {
        let _ = fs::remove_file(&output);
        let _ = fs::remove_file(&known);
        return Err(stop);
    }
    if let Some(depfile) = &options.depfile {
        files.extend(std::env::current_exe().ok());
        files.extend(job.build_inputs().read_policy()?.path);
        files.retain(|file| file.exists());
        // The rule contains the output path as the build system spells it.
        let mut rules = make_rule(&options.output, &files);
        // A removed file then makes the guard again, instead of stopping make.
        for file in &files {
            rules.push_str(&make_target(file));
        }
        files::write_regular(depfile, rules.as_bytes()).map_err(|error| CliError::cannot_write(depfile, &error))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run_seal(env: &Env, sealing: &SealArgs) -> Result<ExitCode, CliError> {
    let file = absolute_path(&sealing.file);
    let mut guards = sealing.objects.iter().chain(&sealing.guard).filter(|object| facts_of(object).is_file());
    let guard = sealing.guard.as_ref().or_else(|| guards.next()).ok_or_else(|| {
        CliError::operational(format_args!(
            "{}: none of the objects is a guard of `embed`; pass the guard with --guard FILE",
            sealing.file.display()
        ))
    })?;
    let mut facts = TargetDescription::from_options_file(&absolute_path(facts_of(guard)))?;
    for object in &sealing.objects {
        facts.objects.push(absolute_path(object));
    }
    let job = CmakeJob::from_facts(facts)?;
    let output = sealing.output.as_deref().map(absolute_path);
    if job.facts.unguarded.is_some() {
        if let Some(output) = &output {
            seal::copy_file(&file, output)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(stop) = verify_and_seal(env, &job, &file, output.as_deref()) {
        // A build tool must not treat a refused file as accepted. A file that is not a linked file is not deleted,
        // because it may have been passed by mistake.
        match output {
            Some(output) if fs::canonicalize(&output).ok() != fs::canonicalize(&file).ok() => {
                let _ = fs::remove_file(output);
            }
            _ if stop.is_refusal() => seal::remove_refused(&file),
            _ => {}
        }
        return Err(stop);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the digest of the options, the guard, and the files that `seal` reads with it.
fn made_of(facts: &str, guard: &str, policies: [Option<&Path>; 2]) -> Digest {
    let mut digest = Digest::new();
    digest.push_text(facts).push_text(guard);
    for policy in policies.into_iter().flatten() {
        digest.push_text(&files::read_text(policy).unwrap_or_default());
    }
    digest
}

/// Returns the path of the facts file next to a guard.
fn facts_of(guard: &Path) -> PathBuf {
    let mut name = guard.as_os_str().to_owned();
    name.push(".facts");
    name.into()
}

/// Converts the options to the text of a facts file.
fn options_as_facts(options: &Options, dir: &Path) -> Result<String, CliError> {
    let tool = parse_compiler(&options.compiler);
    let triple = target_triple(&tool)?;
    let source = check_exists("--source", &options.source)?;
    let program = tool.program.display().to_string();
    let mut text = format!("{HEAD}\n");
    let configuration = if options.release { "release" } else { "debug" };
    let path = |path: &Path| path.display().to_string();
    let mut pairs = vec![
        ("by", BY_OPTIONS.to_owned()),
        ("target", options.name.clone()),
        ("type", "EXECUTABLE".to_owned()),
        ("component", options.name.clone()),
        ("version", options.version.clone()),
        ("source", path(&source)),
        ("top", path(&source)),
        ("binary", path(dir)),
        ("compiler", program),
        ("triple", triple),
        ("configuration", configuration.to_owned()),
        ("debug-configuration", "debug".to_owned()),
        ("install-rpath", "ON".to_owned()),
    ];
    pairs.extend(tool.flags.iter().map(|flag| ("compiler-flag", flag.clone())));
    if let Some(policy) = &options.policy {
        pairs.push(("policy", path(&absolute_path(policy))));
    }
    if let Some(nvcc) = &options.nvcc {
        let nvcc = find_program(nvcc)?;
        pairs.push(("cuda-compiler", path(&nvcc)));
        pairs.push(("cuda-compiler-id", "NVIDIA".to_owned()));
        pairs.push(("cuda-source", "its kernels".to_owned()));
        let real = nvcc.canonicalize().unwrap_or(nvcc);
        if let Some(root) = real.parent().and_then(Path::parent) {
            pairs.push(("cuda-toolkit", path(root)));
        }
    }
    pairs.extend(options.nvcc_flags.iter().map(|flags| ("flags", flags.clone())));
    for (key, dirs) in [("include", &options.includes), ("link-directory", &options.libraries)] {
        for dir in dirs {
            pairs.push((key, path(&absolute_path(dir))));
        }
    }
    if let Some(root) = &options.toolkit {
        pairs.push(("toolkit", path(&check_exists("--toolkit", root)?)));
    }
    for (key, value) in &pairs {
        push_fact(&mut text, key, value)?;
    }
    Ok(text)
}

fn push_fact(text: &mut String, key: &str, value: &str) -> Result<(), CliError> {
    if value.contains('\n') {
        return Err(CliError::operational(format_args!("{value:?}: expected a value without line breaks")));
    }
    text.extend([key, " ", value, "\n"]);
    Ok(())
}

/// Writes the file unless it already has this content, so that build tools see no newer file.
fn write_if_different(path: &Path, text: &str) -> Result<(), CliError> {
    if files::read_text(path).is_ok_and(|kept| kept == text) {
        return Ok(());
    }
    files::write_regular(path, text.as_bytes()).map_err(|error| CliError::cannot_write(path, &error))
}

/// Parses a compiler: the path of a program, or a command line such as `ccache gcc -m64`.
fn parse_compiler(words: &str) -> Tool {
    if Path::new(words).is_file() {
        return Tool { program: words.into(), flags: Vec::new(), kept: None };
    }
    let mut words = words.split_whitespace().map(str::to_owned);
    let program = words.next().unwrap_or_else(|| "cc".to_owned()).into();
    Tool { program, flags: words.collect(), kept: None }
}

/// Resolves a program: a path, or a name that is searched in `PATH`.
fn find_program(program: &Path) -> Result<PathBuf, CliError> {
    if program.components().count() > 1 {
        return check_exists("--nvcc", program);
    }
    let found = platform::find_program(program.as_os_str());
    found.ok_or_else(|| CliError::operational(format_args!("--nvcc {}: is not in PATH", program.display())))
}

/// Returns the absolute path of an option's value, or an error if nothing exists there.
fn check_exists(option: &str, path: &Path) -> Result<PathBuf, CliError> {
    let whole = absolute_path(path);
    fs::metadata(&whole)
        .map_err(|error| CliError::operational(format_args!("{option} {}: {error}", path.display())))?;
    Ok(whole)
}
