//! Kubernetes' decisions about claims, evaluated by a program with a CEL interpreter, which only these tests build.

use std::sync::OnceLock;

use cudaguard_tests::{Call, Project, Scratch, crates};
use serde_json::{Value, json};

use super::consumers::Seen;

/// Returns the answers to these requests (see `cel_program.rs`).
fn evaluate(requests: &[Value]) -> Vec<Result<bool, String>> {
    static PROGRAM: OnceLock<Project> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let crates = "\n[dependencies]\ncel = { version = \"=0.11.6\", default-features = false, features = [\"regex\"] }\n\
                      serde_json = \"1\"\n";
        let project = Project::new("evaluator").append("Cargo.toml", crates).file("src/main.rs", include_str!("cel_program.rs"));
        crates::settle_with_listed(project.path());
        let _ = project.cargo(["build"]).run().success();
        project
    });
    let scratch = Scratch::new("cel-requests");
    let lines: Vec<String> = requests.iter().map(ToString::to_string).collect();
    let file = scratch.file("requests", lines.join("\n") + "\n");
    let call = Call::new("sh").args(["-c", "exec \"$0\" <\"$1\""]).arg(program.built("debug/evaluator")).arg(file);
    let printed = call.run().success().stdout;
    let answers: Vec<_> = printed.lines().map(|line| line.parse::<bool>().map_err(|_| line.to_owned())).collect();
    assert_eq!(answers.len(), requests.len(), "{printed}");
    answers
}

/// Expression of a claim.
pub(crate) struct Claim(String);

impl Claim {
    pub(crate) fn of(text: &str) -> Self {
        let (_, lines) = text.split_once("expression: |-\n").expect("an expression");
        let lines: Vec<&str> =
            lines.lines().map(|line| line.strip_prefix("                ").expect("a block")).collect();
        let expression = lines.join("\n");
        assert!(expression.len() < 10 * 1024, "the API takes no longer one");
        Self(expression)
    }

    fn request(&self, driver: &str, attributes: &[(&str, &str)]) -> Value {
        let numbers = |version: &str| -> Vec<u32> {
            version.split('.').map(|number| number.parse().expect("a number")).collect()
        };
        let attributes: serde_json::Map<String, Value> =
            attributes.iter().map(|(name, version)| ((*name).to_owned(), json!(numbers(version)))).collect();
        let device = json!({ "driver": driver, "attributes": { driver: attributes } });
        json!({ "expression": self.0, "variables": { "device": device } })
    }

    /// Kubernetes allocates a device if this is true. An error aborts the allocation (`CELDeviceSelector`).
    pub(crate) fn takes(&self, driver: &str, attributes: &[(&str, &str)]) -> Result<bool, String> {
        evaluate(&[self.request(driver, attributes)]).remove(0)
    }

    /// Returns for each machine if the claim admits one of its devices.
    pub(crate) fn takes_gpus(&self, machines: &[Seen]) -> Vec<bool> {
        let request = |machine: &Seen, (major, minor): (u32, u32)| {
            let (cc, cuda) = (format!("{major}.{minor}.0"), format!("{}.{}.0", machine.cuda.0, machine.cuda.1));
            let mut release = machine.release.clone();
            while release.matches('.').count() < 2 {
                release += ".0";
            }
            let versions =
                [("cudaComputeCapability", &*cc), ("cudaDriverVersion", &*cuda), ("driverVersion", &*release)];
            self.request("gpu.nvidia.com", &versions)
        };
        let each = machines.iter().flat_map(|machine| machine.gpus.iter().map(move |gpu| request(machine, *gpu)));
        let mut answers = evaluate(&each.collect::<Vec<_>>()).into_iter();
        let mut taken = |machine: &Seen| {
            let own: Vec<bool> = answers
                .by_ref()
                .take(machine.gpus.len())
                .map(|answer| answer.unwrap_or_else(|error| panic!("{error}")))
                .collect();
            own.contains(&true)
        };
        machines.iter().map(&mut taken).collect()
    }
}
