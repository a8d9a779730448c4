//! The forms of a pair, and the answers of the command and of a start.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cudaguard_tests::world::MakeMachine as _;
use cudaguard_tests::{Call, command, layout, scratch};
use serde_json::Value;

use super::arrangement::{Arrangement, machine, write};
use super::{Pair, answer_for};

/// One answer about a pair.
pub(super) struct Answer {
    /// The form and the question: `directory:options`.
    pub(super) form: String,
    pub(super) is: String,
    pub(super) expected: String,
}

impl Answer {
    fn new(form: String, is: String, cell: &str) -> Self {
        let expected = answer_for(cell, &form).to_owned();
        Self { form, is, expected }
    }
}

/// Packs the package as archives, and the root as an image of `docker save`.
const PACK: &str = "
import io, json, os, sys, tarfile, zipfile
def entries(dir):
    for folder, _, files in os.walk(dir):
        for file in sorted(files):
            path = os.path.join(folder, file)
            yield path, os.path.relpath(path, dir)
os.makedirs('root', exist_ok=True)
if os.path.isdir('env'):
    with tarfile.open('package.tar', 'w') as tar:
        tar.add('tree', '.')
    with zipfile.ZipFile('package.zip', 'w') as archive:
        for path, name in entries('tree'):
            archive.write(path, name)
    with zipfile.ZipFile('app-1.0-py3-none-any.whl', 'w', zipfile.ZIP_DEFLATED) as wheel:
        for path, name in entries('tree'):
            wheel.write(path, name)
        record = ''.join(name + ',,\\n' for _, name in entries('tree'))
        for name, text in [('METADATA', open('metadata/METADATA').read()), ('WHEEL', 'Wheel-Version: 1.0\\n'), ('RECORD', record)]:
            wheel.writestr('app-1.0.dist-info/' + name, text)
with tarfile.open('root.tar', 'w') as tar:
    tar.add('root', '.')
config = json.dumps({'architecture': 'amd64', 'os': 'linux', 'config': {'Env': sys.argv[1:]}})
manifest = json.dumps([{'Config': 'config.json', 'RepoTags': ['app:latest'], 'Layers': ['layer.tar']}])
with tarfile.open('image.tar', 'w') as tar:
    for name, text in [('manifest.json', manifest), ('config.json', config)]:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text.encode()))
    tar.add('root.tar', 'layer.tar')
";

const SITE: &str = "env/lib/python3.11/site-packages";

/// Creates the other forms of the package, and returns the name and path of each.
fn make_forms(pair: &Pair, arrangement: &Arrangement) -> Vec<(&'static str, &'static str)> {
    let dir = arrangement.path();
    let mut forms = vec![("file", "tree/app/bin/prog")];
    let is_package = !matches!(pair.place.as_str(), "system" | "cached" | "variable");
    if is_package {
        copy(&dir.join("tree"), &dir.join(SITE));
        copy(&dir.join("metadata"), &dir.join(SITE).join("app-1.0.dist-info"));
        forms.extend([
            ("directory", "tree"),
            ("tar", "package.tar"),
            ("zip", "package.zip"),
            ("wheel", "app-1.0-py3-none-any.whl"),
            ("environment", SITE),
        ]);
    }
    if pair.place == "windows" {
        let _ = Call::new("python3").args(["-c", PACK]).dir(dir).run().success();
        return forms;
    }
    if pair.place != "variable" {
        forms.extend([("root", "root"), ("root-tar", "root.tar")]);
    }
    forms.push(("image", "image.tar"));
    make_root(dir);
    let variables = if arrangement.image_path.is_empty() {
        Vec::new()
    } else {
        vec![format!("LD_LIBRARY_PATH={}", arrangement.image_path)]
    };
    let _ = Call::new("python3").args(["-c", PACK]).args(variables).dir(dir).run().success();
    forms
}

/// Creates the root of an image: the package in `/opt`, and the directories and the cache of the dynamic linker.
fn make_root(dir: &Path) {
    let root = dir.join("root");
    let system = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    copy(&dir.join("tree"), &root.join("opt"));
    for (from, to) in [("outside", "opt/outside"), ("system", &system), ("cached", "usr/local/nvidia/lib")] {
        if dir.join(from).is_dir() {
            copy(&dir.join(from), &root.join(to));
        }
    }
    fs::create_dir_all(root.join(&system)).expect("a directory can be made");
    scratch::write(&root.join("etc/os-release"), "ID=debian\nVERSION_ID=\"12\"\n");
    scratch::write(&root.join("etc/ld.so.conf"), "include /etc/ld.so.conf.d/*.conf\n");
    scratch::write(&root.join("etc/ld.so.conf.d/libraries.conf"), format!("/usr/local/lib\n/{system}\n"));
    if dir.join("cached").is_dir() {
        scratch::write(&root.join("etc/ld.so.conf.d/nvidia.conf"), "/usr/local/nvidia/lib\n");
    }
    let _ = Call::new("unshare").args(["-r", "/usr/sbin/ldconfig", "-X", "-r"]).arg(&root).run().success();
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a directory") {
        let source = entry.expect("an entry").path();
        let target = to.join(source.file_name().expect("a name"));
        if source.is_dir() {
            copy(&source, &target);
        } else if source.is_symlink() {
            layout::link(&fs::read_link(&source).expect("a link"), &target);
        } else {
            write(&target, &fs::read(&source).expect("a file"));
        }
    }
}

/// Returns the answers of every form to every question, and that of a start.
pub(super) fn answers(pair: &Pair, arrangement: &Arrangement) -> Vec<Answer> {
    let dir = arrangement.path();
    let forms = make_forms(pair, arrangement);
    let (world, options) = machine(&pair.machine);
    let is_windows = pair.place == "windows";
    let is_on_machine = matches!(pair.place.as_str(), "system" | "cached" | "variable");
    let machine_dir = dir.join("machine");
    let machine = world.make(&machine_dir);
    if dir.join("system").is_dir() {
        copy(&dir.join("system"), &machine_dir.join(format!("usr-lib/{}-linux-gnu", std::env::consts::ARCH)));
    }
    if dir.join("cached").is_dir() {
        copy(&dir.join("cached"), &machine_dir.join("usr-local/nvidia/lib"));
        let system = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        scratch::write(&machine_dir.join("ld.so.conf"), format!("/usr/local/nvidia/lib\n{system}\n"));
        fs::create_dir_all(machine_dir.join("etc")).expect("a directory can be made");
    }

    // All processes on the machine are one call, because a namespace takes longer than a process.
    let program = command::path().display();
    let mut inside = "./tree/app/bin/prog > /dev/null 2>&1; echo $?\n".to_owned();
    let _ = writeln!(inside, "'{program}' probe --json > host.json");
    add_verify(&mut inside, "", forms[0].1);
    inside += "unset LD_LIBRARY_PATH\n";
    for (_, path) in &forms[1..] {
        add_verify(&mut inside, "", path);
    }
    let variable = std::env::join_paths(&arrangement.library_path).expect("paths without colons");
    let variable = variable.to_string_lossy().into_owned();
    let variables: &[(&str, &str)] = if variable.is_empty() { &[] } else { &[("LD_LIBRARY_PATH", &variable)] };
    let here = machine.call("sh", variables).args(["-c", &inside]).dir(dir).run().success();

    let (mut outside, mut asked) = (String::new(), Vec::new());
    for (form, path) in &forms {
        // A host file lists the libraries of NVIDIA only.
        if !(is_windows || *form == "file" && is_on_machine && pair.needs == "own") {
            add_verify(&mut outside, "--host host.json", path);
            asked.push((format!("{form}:host"), pair.here.as_str()));
        }
        // Options state nothing about the libraries of the machine.
        if *form != "file" || !is_on_machine {
            add_verify(&mut outside, &options.join(" "), path);
            asked.push((format!("{form}:options"), pair.options.as_str()));
        }
    }
    let described = Call::new("sh").args(["-c", &outside]).dir(dir).run().success();

    let mut answers = Vec::new();
    let mut lines = here.stdout.lines();
    let status = lines.next().expect("a status");
    if pair.starts {
        let is = if status == "0" { "starts" } else { "fails" }.to_owned();
        let expected = match answer_for(&pair.here, "file:here").split(' ').next() {
            Some("runs") => "starts".to_owned(),
            Some("refused") => "fails".to_owned(),
            _ => is.clone(),
        };
        answers.push(Answer { form: "start".to_owned(), is, expected });
    }
    // A program for Windows is judged by options alone.
    let judged_here = if is_windows { &[] } else { &forms[..] };
    for ((form, _), line) in judged_here.iter().zip(lines) {
        answers.push(Answer::new(format!("{form}:here"), read(line), &pair.here));
    }
    for ((form, expected), line) in asked.into_iter().zip(described.stdout.lines()) {
        answers.push(Answer::new(form, read(line), expected));
    }
    answers
}

/// Adds a call of `verify`, which prints one line.
fn add_verify(script: &mut String, options: &str, path: &str) {
    let program = command::path().display();
    let _ = writeln!(script, "'{program}' verify --json {options} {path} 2> /dev/null | tr -d '\\n'; echo");
}

/// Returns the verdict and the codes of its errors: `refused CG204`.
fn read(line: &str) -> String {
    let Ok(answer) = serde_json::from_str::<Value>(line) else { return "error".to_owned() };
    let verdict = answer["verdict"].as_str().unwrap_or("error").to_owned();
    let findings = answer["findings"].as_array().into_iter().flatten();
    let errors = findings.filter(|finding| finding["severity"] == "error");
    let mut codes: Vec<&str> = errors.filter_map(|finding| finding["code"].as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes.into_iter().fold(verdict, |text, code| text + " " + code)
}
