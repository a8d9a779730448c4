//! `requirements`: the output for each consumer, which must not admit a machine that our verdict refuses.

mod cel;
mod consumer_agreement;
mod consumers;
mod output;

pub(crate) use output::example;
