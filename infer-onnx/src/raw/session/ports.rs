//! The inputs and outputs of a graph that is loaded, as the runtime describes them.

use super::Owner;
use crate::{raw::type_info::TypeInfo, tensor::Port};
use infer_core::Result;
use infer_sys::onnxruntime::{OrtAllocator, OrtSession, OrtStatusPtr, OrtTypeInfo};
use std::{collections::HashSet, ffi::c_char, ptr};

type CountFn = unsafe extern "system" fn(*const OrtSession, *mut usize) -> OrtStatusPtr;
type NameFn = unsafe extern "system" fn(*const OrtSession, usize, *mut OrtAllocator, *mut *mut c_char) -> OrtStatusPtr;
type KindFn = unsafe extern "system" fn(*const OrtSession, usize, *mut *mut OrtTypeInfo) -> OrtStatusPtr;

impl Owner {
    pub(super) fn inputs(&self) -> Result<Vec<Port>> {
        let table = self.api.table();
        let (names, kinds) = (table.SessionGetInputName, table.SessionGetInputTypeInfo);
        let mut ports = self.ports(table.SessionGetInputCount, names, kinds, false)?;
        let (names, kinds) =
            (table.SessionGetOverridableInitializerName, table.SessionGetOverridableInitializerTypeInfo);
        ports.extend(self.ports(table.SessionGetOverridableInitializerCount, names, kinds, true)?);
        Ok(ports)
    }

    /// A graph may list an output twice. It is one: what is bound, and what a run with a binding gives, goes by name.
    pub(super) fn outputs(&self) -> Result<Vec<Port>> {
        let table = self.api.table();
        let (names, kinds) = (table.SessionGetOutputName, table.SessionGetOutputTypeInfo);
        let mut ports = self.ports(table.SessionGetOutputCount, names, kinds, false)?;
        let mut seen = HashSet::new();
        ports.retain(|port| seen.insert(port.name.clone()));
        Ok(ports)
    }

    fn ports(&self, count: CountFn, name: NameFn, kind: KindFn, has_default: bool) -> Result<Vec<Port>> {
        let (api, session) = (self.api, self.session());
        let mut len = 0;
        // SAFETY: the session lives; `len` is a valid place.
        let status = unsafe { count(session, &raw mut len) };
        api.check("count the inputs and outputs of the graph", status)?;
        let port = |index| {
            let (mut text, mut info) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: the session lives and has the index; the allocator lives for ever; `text` is a valid place.
            let status = unsafe { name(session, index, api.allocator(), &raw mut text) };
            api.check("ask for the name of an input or output", status)?;
            // SAFETY: a C string that the entry has just got from that allocator, for us.
            let name = unsafe { api.take_text(text) };
            // SAFETY: the session lives and has the index; `info` is a valid place.
            let status = unsafe { kind(session, index, &raw mut info) };
            api.check("ask for the type of an input or output", status)?;
            Ok(Port { name, kind: TypeInfo::new(api, info)?.read()?, has_default })
        };
        (0..len).map(port).collect()
    }
}
