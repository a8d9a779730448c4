//! Formats of the output of each subcommand.

use clap::{Args, ValueEnum};

/// `--format`, with `--json` as its short form.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Format<F: ValueEnum + Default + Send + Sync + 'static> {
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: F,
    /// Print JSON; same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl<F: ValueEnum + Default + Send + Sync + 'static> Format<F> {
    /// Returns the selected format.
    pub(crate) fn get(self) -> F {
        if self.json { F::from_str("json", false).expect("each subcommand prints JSON") } else { self.format }
    }
}

/// Format of `inspect` and `verify`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Human-readable text
    #[default]
    Text,
    /// JSON
    Json,
    /// SARIF, for code scanning services
    Sarif,
}

/// Format of `diff`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// Human-readable text
    #[default]
    Text,
    /// Markdown for a pull request or release notes
    Markdown,
    /// JSON
    Json,
}

/// Format of `choose`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChooseFormat {
    /// Human-readable text
    #[default]
    Text,
    /// JSON
    Json,
    /// Arguments of pip install
    Pip,
    /// Arguments of uv pip install
    Uv,
    /// Pin for conda
    Conda,
    /// Part of an image tag
    Docker,
}

/// Format of `doctor` and `explain`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOrJson {
    /// Human-readable text
    #[default]
    Text,
    /// JSON
    Json,
}

/// Format of `map`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MapFormat {
    /// Table for the terminal
    #[default]
    Text,
    /// SVG image
    Svg,
    /// HTML page
    Html,
    /// Markdown table for release notes
    Markdown,
    /// JSON
    Json,
}

/// Format of `probe`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProbeFormat {
    /// Human-readable text
    #[default]
    Text,
    /// Host file, for `verify --host`
    Json,
    /// Host file in one line, for `verify --fleet`
    Line,
}

/// Format of `requirements`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RequirementsFormat {
    /// Human-readable text
    #[default]
    Text,
    /// JSON
    Json,
    /// Dockerfile lines with labels and the variable `NVIDIA_REQUIRE_CUDA`
    Oci,
    /// Kubernetes resource claim for the NVIDIA DRA driver
    K8sDra,
    /// Kubernetes node affinity by the labels of GPU feature discovery
    K8sAffinity,
    /// Pins of a conda recipe
    Conda,
    /// Properties of a wheel variant
    WheelVariant,
    /// Check for a Slurm job script
    Slurm,
    /// CycloneDX components
    #[value(name = "cyclonedx")]
    CycloneDx,
    /// SPDX packages
    Spdx,
}

impl RequirementsFormat {
    /// Returns the name that `--format` accepts.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().expect("no format is hidden").get_name().to_owned()
    }
}
