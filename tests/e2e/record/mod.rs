//! A manifest records the compiled and linked components, independent of the environment: real toolkits of one or two
//! majors, with cargo and CMake. A mismatch is refused in a release build, which leaves no outputs. It is a warning in a
//! dev build. Matching components produce no output.

mod by_cargo;
mod by_cc;
mod by_cmake;
mod cudnn;
mod environment;
mod external_tools;
mod fixture;
mod switched_toolkits;
