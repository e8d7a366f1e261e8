//! What this process can have of the machine it runs on: memory and threads, as the system and its cgroups say.

mod cgroup;
mod memory;
mod threads;

pub use memory::{Available, Size, available_memory, check_memory};
pub use threads::{allowed_cpus, available_threads};
