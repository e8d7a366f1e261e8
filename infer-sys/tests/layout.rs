//! The structs that cross the door are laid out here as the compiler of the door laid them out.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use infer_sys::llama::Api;
use infer_sys::llama::bindings::*;

type Fields = BTreeMap<(String, String), (u32, u32)>;

/// Name, offset and size of fields, as Rust has them.
macro_rules! ours {
    ($fields:ident, $($type:ident { $($field:ident $(as $c_name:literal)?),* $(,)? })*) => {
        $(
            $fields.insert((stringify!($type).to_owned(), String::new()), (0, size_of::<$type>() as u32));
            $(
                let value = $type::default();
                let name = None $(.or(Some($c_name)))?.unwrap_or(stringify!($field)).to_owned();
                let place = (offset_of!($type, $field) as u32, size_of_val(&value.$field) as u32);
                $fields.insert((stringify!($type).to_owned(), name), place);
            )*
        )*
    };
}

fn ours() -> Fields {
    let mut fields = Fields::new();
    ours! { fields,
        llama_model_params {
            devices, tensor_buft_overrides, n_gpu_layers, split_mode, load_mode, lazy_mode, main_gpu, tensor_split,
            progress_callback, progress_callback_user_data, kv_overrides, vocab_only, check_tensors, use_extra_bufts,
            no_host, no_alloc, load_mtp,
        }
        llama_context_params {
            n_ctx, n_batch, n_ubatch, n_seq_max, n_rs_seq, n_outputs_max, n_outputs_max_per_seq, n_threads,
            n_threads_batch, ctx_type, rope_scaling_type, pooling_type, attention_type, flash_attn_type, rope_freq_base,
            rope_freq_scale, yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow, yarn_orig_ctx,
            defrag_thold, cb_eval, cb_eval_user_data, type_k, type_v, abort_callback, abort_callback_data, embeddings,
            offload_kqv, no_perf, op_offload, swa_full, kv_unified, samplers, n_samplers, ctx_other,
        }
        llama_batch { n_tokens, token, embd, pos, n_seq_id, seq_id, logits }
        infer_llama_error { code, message }
        infer_llama_limits {
            max_devices, max_sequences, max_threads, supports_mmap, supports_mlock, supports_gpu_offload, supports_rpc,
        }
        infer_llama_device {
            handle, name, description, id, backend, type_ as "type", memory_free, memory_total,
        }
        infer_llama_model_info {
            n_ctx_train, n_embd, n_embd_inp, n_embd_out, n_layer, n_head, n_head_kv, n_swa, rope_type,
            rope_freq_scale_train, n_cls_out, ftype, n_params, size, decoder_start_token, has_encoder, has_decoder,
            is_recurrent, is_hybrid, is_diffusion,
        }
        infer_llama_vocab_info {
            type_ as "type", n_tokens, bos, eos, eot, sep, nl, pad, mask, fim_pre, fim_suf, fim_mid, fim_pad, fim_rep,
            fim_sep, add_bos, add_eos, add_sep,
        }
        infer_llama_token_info { text, score, attr, is_eog, is_control }
        infer_llama_context_info {
            n_ctx, n_ctx_seq, n_batch, n_ubatch, n_seq_max, n_threads, n_threads_batch, pooling_type, causal_attn,
            has_memory, can_shift,
        }
        infer_llama_memory { name, is_host, model, context, compute }
        llama_model_kv_override { tag, key }
    }
    // A union without a name in C, and with one that bindgen gave it here.
    let value = offset_of!(llama_model_kv_override, __bindgen_anon_1) as u32;
    fields.insert(("llama_model_kv_override".to_owned(), "val_i64".to_owned()), (value, 8));
    fields
}

#[test]
fn every_field_is_where_the_door_has_it() {
    let api = Api::linked().expect("the door of this build is the one the bindings are made for");
    let text = |pointer| {
        // SAFETY: the names are constants of the door.
        let text = unsafe { CStr::from_ptr(pointer) };
        text.to_str().unwrap().to_owned()
    };
    let theirs: Fields =
        api.fields().iter().map(|field| ((text(field.type_), text(field.field)), (field.offset, field.size))).collect();
    assert_eq!(theirs.len(), api.fields().len(), "no field is told twice");
    assert_eq!(theirs, ours());
}

#[test]
fn the_door_says_what_it_is() {
    let api = Api::linked().unwrap();
    assert_eq!(api.commit(), infer_sys::llama::COMMIT);
    assert_eq!(api.commit().len(), 40);
    assert!(!api.llama_version().is_empty());
    assert!(!api.variant().is_empty());
}
