//! How a long step tells its caller where it is; how that looks is the caller's.

/// Hears what is being done. Every method may be left as it is.
pub trait Progress {
    /// A step begins: "building llama.cpp".
    fn start(&mut self, step: &str) {
        let _ = step;
    }

    /// `done` of `total` pieces of the step are behind us.
    fn advance(&mut self, done: u64, total: u64) {
        let _ = (done, total);
    }

    /// The step ended well; `note` is what came of it.
    fn finish(&mut self, note: &str) {
        let _ = note;
    }

    /// Something worth a line of its own: that another process is waited for.
    fn note(&mut self, line: &str) {
        let _ = line;
    }
}

/// Says nothing: for build scripts, whose output nobody sees.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}
