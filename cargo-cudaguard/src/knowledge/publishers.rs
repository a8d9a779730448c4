//! The oldest GPUs that projects document for their builds, apart from PyTorch.

/// A project whose builds support fewer GPUs than their toolkit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Publisher {
    /// The beginning of the names of its packages and images.
    name: &'static str,
    /// What findings call a build.
    pub(crate) label: &'static str,
    /// The oldest compute capability.
    pub(crate) oldest: (u8, u8),
}

const PUBLISHERS: &[Publisher] = &[
    // https://docs.jax.dev/en/latest/installation.html#nvidia-gpu
    Publisher { name: "jax", label: "JAX for CUDA", oldest: (5, 2) },
    // https://docs.vllm.ai/en/stable/getting_started/installation/gpu/
    Publisher { name: "vllm", label: "vLLM for CUDA", oldest: (7, 0) },
];

/// Returns the project that a name such as `vllm+cu126` or `vllm/vllm-openai:cuda12` begins with.
pub(crate) fn publisher_of(name: &str) -> Option<&'static Publisher> {
    PUBLISHERS.iter().find(|publisher| {
        let rest = name.strip_prefix(publisher.name);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    })
}
