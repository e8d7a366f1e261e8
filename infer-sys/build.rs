//! What the doors need at build time. Decisions, and their tests, are in `build-support`; nothing is fetched here.

use std::process::ExitCode;

use build_support::cargo::Script;

fn main() -> ExitCode {
    let host = build_support::begin();
    let script = Script::new(env!("CARGO_MANIFEST_DIR")).pins().and_then(|script| script.llama(&host));
    match script {
        Ok(script) => {
            script.emit();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
