//! What is compared before anybody calls through a table.

use std::ffi::CStr;

use super::bindings::{
    INFER_LLAMA_DOOR_VERSION, infer_llama_context_info, infer_llama_device, infer_llama_error, infer_llama_limits,
    infer_llama_memory, infer_llama_model_info, infer_llama_table, infer_llama_token_info, infer_llama_vocab_info,
    llama_batch, llama_context_params, llama_model_kv_override, llama_model_params,
};
use super::{COMMIT, calls};
use crate::Refusal;
use crate::door::{Table, size_u32, text};

// SAFETY: `llama_door.h` has every version begin with the two ("this prefix never changes its shape"), and has strings and table live as long as
// the process, filled once.
unsafe impl Table for infer_llama_table {
    const VERSION: u32 = INFER_LLAMA_DOOR_VERSION;

    fn wanted(variant: Option<&str>) -> String {
        let variant = variant.map(|variant| format!(", variant {variant}")).unwrap_or_default();
        format!("llama.cpp of commit {COMMIT}, door version {INFER_LLAMA_DOOR_VERSION}{variant}")
    }

    fn release(&self) -> Result<(), Refusal> {
        // SAFETY: a string of the table, by the contract of the trait.
        let found = unsafe { text(self.commit) }.to_string_lossy();
        if found != COMMIT {
            return Err(Refusal::Commit { wanted: COMMIT.to_owned(), found: found.into_owned() });
        }
        Ok(())
    }

    fn variant(&self) -> &'static CStr {
        // SAFETY: a string of the table, by the contract of the trait.
        unsafe { text(self.variant) }
    }

    fn struct_sizes(&self) -> impl IntoIterator<Item = (&'static str, u32, u32)> {
        [
            ("infer_llama_error", size_u32::<infer_llama_error>(), self.sizeof_error),
            ("llama_model_params", size_u32::<llama_model_params>(), self.sizeof_model_params),
            ("llama_context_params", size_u32::<llama_context_params>(), self.sizeof_context_params),
            ("llama_batch", size_u32::<llama_batch>(), self.sizeof_batch),
            ("llama_model_kv_override", size_u32::<llama_model_kv_override>(), self.sizeof_kv_override),
            ("infer_llama_limits", size_u32::<infer_llama_limits>(), self.sizeof_limits),
            ("infer_llama_device", size_u32::<infer_llama_device>(), self.sizeof_device),
            ("infer_llama_model_info", size_u32::<infer_llama_model_info>(), self.sizeof_model_info),
            ("infer_llama_vocab_info", size_u32::<infer_llama_vocab_info>(), self.sizeof_vocab_info),
            ("infer_llama_token_info", size_u32::<infer_llama_token_info>(), self.sizeof_token_info),
            ("infer_llama_context_info", size_u32::<infer_llama_context_info>(), self.sizeof_context_info),
            ("infer_llama_memory", size_u32::<infer_llama_memory>(), self.sizeof_memory),
        ]
    }

    fn first_missing(&self) -> Option<&'static str> {
        calls::first_missing(self)
    }
}
