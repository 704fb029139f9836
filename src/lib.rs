//! The real machine: tokio and Linux behind `mu_core::os::Os`.
