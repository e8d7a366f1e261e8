//! Many requests, one forward pass.

mod channel;
mod job;
mod scheduler;
mod settings;
mod shared;

pub use scheduler::{EngineStats, Event, Happened, StepTimes, Timeline};
