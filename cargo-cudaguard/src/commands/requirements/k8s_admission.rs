//! A policy that admits a pod with this program only if its node affinity restricts it to suitable nodes.
//!
//! The format is `ValidatingAdmissionPolicy` (admissionregistration.k8s.io/v1, Kubernetes 1.30 or newer). It can access
//! the pod but no node: each term of the pod must contain all expressions of one of the terms of `k8s-affinity`, and
//! may contain more.

use std::fmt::Write as _;

use super::k8s_affinity::{self, Factor};
use super::{RequirementsQuery, comment_lines};

pub(super) fn write_admission_policy(asked: &RequirementsQuery<'_>) -> Result<String, String> {
    let terms = k8s_affinity::all_terms(asked)?;
    let (name, image, pattern) = (&asked.name.object, &asked.name.image, asked.name.image_pattern());
    let mut heading =
        asked.comment_heading("ValidatingAdmissionPolicy (admissionregistration.k8s.io/v1, Kubernetes 1.30 or newer)");
    heading.push(format!(
        "Pods with an image called {image} (matchConditions) must have the node affinity of --format k8s-affinity, or"
    ));
    heading.push("a narrower one with the same expressions in each term. A pod that selects its GPUs in another way (a narrower number, a".to_owned());
    heading.push("resource claim, nodeName) is refused too, because this policy cannot check it.".to_owned());
    let mut text = comment_lines(&heading);
    let _ = write!(
        text,
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n  name: {name}-gpus\nspec:\n  \
         failurePolicy: Fail\n  matchConstraints:\n    resourceRules:\n    - apiGroups: [\"\"]\n      apiVersions: [\"v1\"]\n      \
         operations: [\"CREATE\", \"UPDATE\"]\n      resources: [\"pods\"]\n  matchConditions:\n  - name: has-the-program\n    \
         expression: |-\n      (object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []))\n      \
         .exists(c, has(c.image) && c.image.matches(\"{pattern}\"))\n  \
         variables:\n  - name: terms\n    expression: |-\n"
    );
    let path = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    let mut of = "object.spec".to_owned();
    let mut there = Vec::new();
    for step in path {
        let _ = write!(of, ".{step}");
        there.push(format!("has({of})"));
    }
    let _ = write!(text, "      {}\n      ? {of}.nodeSelectorTerms : []\n", there.join(" &&\n      "));
    text.push_str("  validations:\n  - expression: |-\n      variables.terms.size() > 0 &&\n      variables.terms.all(term, has(term.matchExpressions) && (\n");
    let all: Vec<String> = terms.iter().map(|term| format!("        ({})", term_of(term))).collect();
    let _ = writeln!(text, "{}))", all.join(" ||\n"));
    let _ = writeln!(
        text,
        "    message: \"{name} does not run on every node that this pod may be scheduled on: add the node affinity that cudaguard \
         requirements --format k8s-affinity prints\""
    );
    let _ = write!(
        text,
        "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata:\n  name: {name}-gpus\nspec:\n  \
         policyName: {name}-gpus\n  validationActions: [Deny]\n"
    );
    Ok(text)
}

fn term_of(term: &[Factor]) -> String {
    let factor = |(label, operator, value): &Factor| {
        format!(
            "term.matchExpressions.exists(e, e.key == \"{label}\" && e.operator == \"{operator}\" && e.values == [\"{value}\"])"
        )
    };
    term.iter().map(factor).collect::<Vec<_>>().join(" &&\n         ")
}
