//! Weights from files into the memory that MLX computes with.

use super::{Planned, Shards, shards::Place};
use crate::{
    Owned, Scope,
    array::failed,
    error::error,
    raw::Unread,
    safetensors::{Header, open_file, unreadable},
};
use infer_core::{
    Error, ErrorKind, Result,
    machine::{Size, available_memory},
};
use std::{
    fs::File,
    io::{ErrorKind as IoErrorKind, Seek, SeekFrom},
    ops::ControlFlow,
    path::Path,
};

impl Planned {
    /// Reads all weights, in the order in which they lie, and computes what is made of them.
    ///
    /// # Errors
    /// As of [`Package::load`](crate::Package::load).
    pub(crate) fn read(
        self,
        scope: &Scope<'_>,
        shards: &Shards,
        watch: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<()> {
        if cfg!(target_endian = "big") {
            let message =
                "safetensors files are little-endian and are read as they lie, which this machine cannot compute with";
            return Err(error(ErrorKind::Unsupported, message));
        }
        let Self { mut read, computed, .. } = self;
        // Tensors of a header are in the order in which they lie.
        read.sort_by_key(|(place, _)| *place);
        let total = read.iter().map(|(place, _)| shards.tensor(*place).bytes()).sum::<u64>();
        check_memory(scope, shards.folder(), total)?;
        let mut progress = Progress { watch, done: 0, total };
        progress.advance(0)?;
        for of_file in read.chunk_by(|(one, _), (other, _)| one.file == other.file) {
            let header = &shards.headers()[of_file[0].0.file];
            let mut file = open_unchanged(header)?;
            for (place, weight) in of_file {
                weight.fill(read_tensor(scope, &mut file, header, *place, &mut progress)?);
            }
        }
        // Most are views of what was read; one evaluation is enough for all.
        let scope = scope.nest();
        let made: Vec<_> = computed.iter().map(|(_, compute)| compute(&scope)).collect();
        scope.eval(made.iter().copied())?;
        for ((weight, _), made) in computed.iter().zip(made) {
            weight.fill(made.own());
        }
        Ok(())
    }
}

/// Weights that are more than the machine has are known to be before the first of them is read: the system would end the process in the middle.
fn check_memory(scope: &Scope<'_>, folder: &Path, need: u64) -> Result<()> {
    let Some(available) = available_memory() else { return Ok(()) };
    let kept = scope.runtime().memory().map_err(|failure| failed("ask for the memory", failure))?.cache;
    let room = available.bytes.saturating_add(kept);
    if need <= room {
        return Ok(());
    }
    let message = format!(
        "{}: the weights take {}, {} can be had within {}; free some, or take the model with fewer bits a weight",
        folder.display(),
        Size(need),
        Size(room),
        available.limit
    );
    Err(error(ErrorKind::OutOfMemory, message))
}

/// How far reading has come, and who is told.
struct Progress<'w> {
    watch: &'w mut dyn FnMut(f32) -> ControlFlow<()>,
    done: u64,
    total: u64,
}

impl Progress<'_> {
    fn advance(&mut self, bytes: u64) -> Result<()> {
        self.done += bytes;
        let share = if self.total == 0 { 1.0 } else { self.done as f64 / self.total as f64 };
        match (self.watch)(share as f32) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(error(ErrorKind::Cancelled, "loading was stopped by whoever watches it")),
        }
    }
}

/// Opens the file of a header that was read before.
fn open_unchanged(header: &Header) -> Result<File> {
    let file = open_file(header.path())?;
    let bytes = file.metadata().map_err(|why| unreadable(header.path(), why))?.len();
    if bytes == header.bytes() { Ok(file) } else { Err(changed(header.path())) }
}

fn changed(path: &Path) -> Error {
    let message = format!("{} has changed while the model was being loaded: load it again", path.display());
    error(ErrorKind::InvalidModel, message)
}

fn read_tensor(
    scope: &Scope<'_>,
    file: &mut File,
    header: &Header,
    place: Place,
    progress: &mut Progress<'_>,
) -> Result<Owned> {
    let tensor = &header.tensors()[place.tensor];
    let path = header.path();
    file.seek(SeekFrom::Start(tensor.offset())).map_err(|why| unreadable(path, why))?;
    // The header was refused where a size does not fit.
    let shape: Vec<i32> = tensor.shape().iter().map(|&size| size as i32).collect();
    let mut stopped = None;
    let mut watch = |bytes: usize| match progress.advance(bytes as u64) {
        Ok(()) => ControlFlow::Continue(()),
        Err(why) => {
            stopped = Some(why);
            ControlFlow::Break(())
        }
    };
    // Of one handle, whose owner outlives this scope.
    let scope = scope.nest();
    match scope.runtime().read(file, &shape, tensor.dtype(), &mut watch) {
        Ok(fresh) => Ok(scope.take_in("read", &[], Ok(fresh)).own()),
        Err(Unread::Refused(failure)) => Err(failed(&format!("make room for the weight {:?}", tensor.name()), failure)),
        Err(Unread::Io(why)) if why.kind() == IoErrorKind::UnexpectedEof => Err(changed(path)),
        Err(Unread::Io(why)) => Err(unreadable(path, why)),
        Err(Unread::Stopped) => Err(stopped.unwrap_or_else(|| changed(path))),
    }
}
