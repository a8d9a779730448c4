//! Real CUDA and cuDNN.

use cudaguard_tests::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    Vec::new()
}
