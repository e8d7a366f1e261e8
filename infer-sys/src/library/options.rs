//! What a caller chooses.

use std::path::PathBuf;
use std::time::Duration;

use super::probe;

/// Names the cache folder. Ignored when the process runs with raised privileges.
pub const CACHE_VARIABLE: &str = "INFER_CACHE";

/// Where to look for a runtime's library.
///
/// By default, in this order, the first that serves:
///
/// 1. the file that the runtime's variable names: `INFER_LLAMA_LIBRARY`, `INFER_ONNXRUNTIME_LIBRARY`, `INFER_MLX_LIBRARY`;
/// 2. the cache: `llama/<commit>/<variant>/`, `onnxruntime/<version>/<variant>/` or `mlx/<version>/<variant>/` in the folder that [`CACHE_VARIABLE`] names, else in the user's cache
///    folder. Its sha256 must be the one written beside it, and on Linux and Windows what is loaded is the very file that was hashed. So it is for the libraries that it needs;
/// 3. the folder of this program, then `../lib` beside that folder.
///
/// A file given by path or by variable is the only one tried: it is what was asked for, or an error. Files of the last two kinds must belong
/// to this user or to root, and nobody outside this user's own group may be able to write them. All paths must be absolute; the working
/// directory and the system's own search path are never used. When the process runs with raised privileges (set-user-id and the like), only a
/// path or a cache given in code is used, since whoever started it may have set everything else.
///
/// A library is *probed* before it is opened: a child process opens it, starts it and asks for what it has, so that one that aborts, crashes,
/// hangs or ends the process is refused with what happened, and nothing of it has run here. The child is a program that `infer setup` puts
/// beside the library; the one of the variant "cpu" in the cache serves where there is none. It is held to the same rules: a hash beside it,
/// or an owner that vouches for it. A file that has been opened by this process before is not probed again. By default a library is opened
/// unprobed where there is no such program, or it cannot be run; [`with_probe`](Self::with_probe) says otherwise.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    pub(super) path: Option<PathBuf>,
    pub(super) variant: Option<String>,
    pub(super) cache: Option<PathBuf>,
    pub(super) probe: probe::Options,
}

impl LoadOptions {
    /// The default search.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads this file and looks nowhere else. The path must be absolute; its content is not checked against any hash.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Wants this variant ("cpu", "vulkan", …): picks the folder in the cache, and is compared with what the library says of itself, where it
    /// does.
    /// Without it, the cache is searched for "cpu" and any variant serves.
    #[must_use]
    pub fn with_variant(mut self, variant: impl Into<String>) -> Self {
        self.variant = Some(variant.into());
        self
    }

    /// Uses this folder as the cache. The path must be absolute.
    #[must_use]
    pub fn with_cache(mut self, cache: impl Into<PathBuf>) -> Self {
        self.cache = Some(cache.into());
        self
    }

    /// Whether a library is probed. `true`: one that cannot be probed is refused. `false`: none is.
    #[must_use]
    pub fn with_probe(mut self, probe: bool) -> Self {
        self.probe.wanted = Some(probe);
        self
    }

    /// How long a probe may take; a library that was not done by then is refused. A minute, unless it is set.
    #[must_use]
    pub fn with_probe_time(mut self, time: Duration) -> Self {
        self.probe.patience = time;
        self
    }
}
