//! How an encoder's graph is loaded: with this library's own operators in it, where these are quicker than the runtime's.

use crate::{
    GraphOptions, Model, Onnx, Optimization,
    error::from_ort,
    fuse::{self, Fused},
    graph::about,
    header, providers,
    raw::{Mapped, Session, SharedWeights, operators},
};
use infer_core::{Error, ErrorKind, Result};
use ort::session::builder::SessionBuilder;
use std::{ffi::OsStr, fs, path::Path, sync::Arc};

/// The graph of a model, loaded for so many threads, with weights that other sessions have too.
///
/// # Errors
/// [`Unsupported`](infer_core::ErrorKind::Unsupported) where it was opened for its vocabulary only; those of [`Graph::open`](crate::Graph::open).
pub(super) fn load(model: &Model, threads: Option<usize>, weights: Option<&Arc<SharedWeights>>) -> Result<Session> {
    let (onnx, options) = model.whole()?;
    let mut options = GraphOptions { threads: threads.or(options.threads), ..options.clone() };
    if model.is_of_cpu() {
        without_slower_kernels(&mut options);
    }
    let path = model.package().graph();
    let mut refused = None;
    if model.is_of_cpu() && wants_own_kernels(&options) {
        match with_own_kernels(onnx, &options, weights, path) {
            Ok(Some(session)) => return Ok(session),
            Ok(None) => {}
            Err(failure) => refused = Some(failure),
        }
    }
    let (session, _) = providers::load(onnx, &options, |builder| {
        Session::from_file(onnx.environment(), builder, weights.cloned(), path)
            .map_err(|failure| about(&path.display().to_string(), failure))
    })?;
    // Where the model itself is wrong, the error says so better.
    if let Some(failure) = refused {
        tracing::warn!("{} is computed by the runtime's own kernels: {failure}", path.display());
    }
    Ok(session)
}

fn wants_own_kernels(options: &GraphOptions) -> bool {
    let are_wanted = options.own_kernels.unwrap_or_else(operators::are_worth_it);
    are_wanted && options.optimization == Optimization::All
}

/// The graph with operators of this library in it; `None` where it has nothing for them.
fn with_own_kernels(
    onnx: &Onnx,
    options: &GraphOptions,
    weights: Option<&Arc<SharedWeights>>,
    path: &Path,
) -> Result<Option<Session>> {
    let Some((fused, folder)) = fused(path)? else { return Ok(None) };
    let loaded = providers::load(onnx, options, |builder| {
        let builder = with_operators(builder, &folder)?;
        Session::from_bytes(onnx.environment(), builder, weights.cloned(), &fused.model)
    });
    let (session, _) = loaded?;
    tracing::debug!("{} operators of {} are this library's own", fused.operators, path.display());
    Ok(Some(session))
}

/// The model with the operators in it, and the folder in which its weights are looked for.
fn fused(path: &Path) -> Result<Option<(Fused, String)>> {
    let unreadable = |error| Error::new(ErrorKind::Io, format!("cannot find {}", path.display())).with_source(error);
    // The runtime takes weights from a folder only where they lie in it themselves, and models are kept as links.
    let real = fs::canonicalize(path).map_err(unreadable)?;
    let folder = path.parent().map_or(Path::new(""), |folder| folder);
    let is_link = fs::canonicalize(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
        .map_err(unreadable)?
        .join(path.file_name().unwrap_or_default())
        != real;
    if is_link && !header::open(path)?.files().is_empty() {
        return Ok(None);
    }
    // Both go to the runtime as texts.
    let text = |part: Option<&OsStr>| part.and_then(OsStr::to_str).map(str::to_owned);
    let (Some(name), Some(folder)) = (text(real.file_name()), text(real.parent().map(Path::as_os_str))) else {
        return Ok(None);
    };
    Ok(fuse::fuse(&Mapped::open(&real)?, &name)?.map(|fused| (fused, folder)))
}

fn with_operators(builder: SessionBuilder, folder: &str) -> Result<SessionBuilder> {
    let builder = operators::add_to(builder)?;
    let set = builder.with_config_entry("session.model_external_initializers_file_folder_path", folder);
    set.map_err(|error| from_ort("set where weights are", &error))
}

/// Leaves it to the runtime not to put a GELU or a normalisation and the additions before it together: the one kernel for both takes longer on
/// the CPU (1.32) than those it has for each do one after the other. What somebody said about this by hand stays.
fn without_slower_kernels(options: &mut GraphOptions) {
    const KEY: &str = "optimization.disable_specified_optimizers";
    if options.config.iter().all(|(key, _)| key != KEY) {
        options.config.push((KEY.to_owned(), "BiasGeluFusion;SkipLayerNormFusion".to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_by_hand_about_what_is_put_together_stays() {
        let key = "optimization.disable_specified_optimizers";
        for (said, set) in [
            (None, "BiasGeluFusion;SkipLayerNormFusion"),
            (Some(("session.set_denormal_as_zero", "1")), "BiasGeluFusion;SkipLayerNormFusion"),
            (Some((key, "GeluFusion")), "GeluFusion"),
        ] {
            let mut options = GraphOptions::new();
            if let Some((key, value)) = said {
                options = options.with_config(key, value);
            }
            without_slower_kernels(&mut options);
            let of_key: Vec<_> = options.config.iter().filter(|(name, _)| name == key).collect();
            assert_eq!(of_key, [&(key.to_owned(), set.to_owned())]);
        }
    }
}
