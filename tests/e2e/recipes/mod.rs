//! Profiles of cargo: which of them are release builds, under plain cargo and under the command.

mod fixture;
mod profiles;
