// Made from build-support/shim/llama_door.h by `cargo xtask bindings`. Not edited by hand.
#[repr(C)]
#[derive(Debug)]
pub struct ggml_tensor {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct llama_sampler {
    _unused: [u8; 0],
}

pub const LLAMA_STATE_SEQ_FLAGS_NONE: u32 = 0;
pub const LLAMA_STATE_SEQ_FLAGS_SWA_ONLY: u32 = 1;
pub const LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY: u32 = 1;
pub const LLAMA_STATE_SEQ_FLAGS_ON_DEVICE: u32 = 2;
pub const INFER_LLAMA_DOOR_VERSION: u32 = 2;
pub const INFER_LLAMA_MESSAGE_SIZE: u32 = 1024;
#[repr(C)]
#[derive(Debug)]
pub struct ggml_context {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct ggml_cgraph {
    _unused: [u8; 0],
}
pub const GGML_TYPE_F32: ggml_type = 0;
pub const GGML_TYPE_F16: ggml_type = 1;
pub const GGML_TYPE_Q4_0: ggml_type = 2;
pub const GGML_TYPE_Q4_1: ggml_type = 3;
pub const GGML_TYPE_Q5_0: ggml_type = 6;
pub const GGML_TYPE_Q5_1: ggml_type = 7;
pub const GGML_TYPE_Q8_0: ggml_type = 8;
pub const GGML_TYPE_Q8_1: ggml_type = 9;
pub const GGML_TYPE_Q2_K: ggml_type = 10;
pub const GGML_TYPE_Q3_K: ggml_type = 11;
pub const GGML_TYPE_Q4_K: ggml_type = 12;
pub const GGML_TYPE_Q5_K: ggml_type = 13;
pub const GGML_TYPE_Q6_K: ggml_type = 14;
pub const GGML_TYPE_Q8_K: ggml_type = 15;
pub const GGML_TYPE_IQ2_XXS: ggml_type = 16;
pub const GGML_TYPE_IQ2_XS: ggml_type = 17;
pub const GGML_TYPE_IQ3_XXS: ggml_type = 18;
pub const GGML_TYPE_IQ1_S: ggml_type = 19;
pub const GGML_TYPE_IQ4_NL: ggml_type = 20;
pub const GGML_TYPE_IQ3_S: ggml_type = 21;
pub const GGML_TYPE_IQ2_S: ggml_type = 22;
pub const GGML_TYPE_IQ4_XS: ggml_type = 23;
pub const GGML_TYPE_I8: ggml_type = 24;
pub const GGML_TYPE_I16: ggml_type = 25;
pub const GGML_TYPE_I32: ggml_type = 26;
pub const GGML_TYPE_I64: ggml_type = 27;
pub const GGML_TYPE_F64: ggml_type = 28;
pub const GGML_TYPE_IQ1_M: ggml_type = 29;
pub const GGML_TYPE_BF16: ggml_type = 30;
pub const GGML_TYPE_TQ1_0: ggml_type = 34;
pub const GGML_TYPE_TQ2_0: ggml_type = 35;
pub const GGML_TYPE_MXFP4: ggml_type = 39;
pub const GGML_TYPE_NVFP4: ggml_type = 40;
pub const GGML_TYPE_Q1_0: ggml_type = 41;
pub const GGML_TYPE_Q2_0: ggml_type = 42;
pub const GGML_TYPE_COUNT: ggml_type = 43;
pub type ggml_type = ::core::ffi::c_uint;
pub const GGML_OP_NONE: ggml_op = 0;
pub const GGML_OP_DUP: ggml_op = 1;
pub const GGML_OP_ADD: ggml_op = 2;
pub const GGML_OP_ADD_ID: ggml_op = 3;
pub const GGML_OP_ADD1: ggml_op = 4;
pub const GGML_OP_ACC: ggml_op = 5;
pub const GGML_OP_SUB: ggml_op = 6;
pub const GGML_OP_MUL: ggml_op = 7;
pub const GGML_OP_DIV: ggml_op = 8;
pub const GGML_OP_SQR: ggml_op = 9;
pub const GGML_OP_SQRT: ggml_op = 10;
pub const GGML_OP_LOG: ggml_op = 11;
pub const GGML_OP_SIN: ggml_op = 12;
pub const GGML_OP_COS: ggml_op = 13;
pub const GGML_OP_SUM: ggml_op = 14;
pub const GGML_OP_SUM_ROWS: ggml_op = 15;
pub const GGML_OP_CUMSUM: ggml_op = 16;
pub const GGML_OP_MEAN: ggml_op = 17;
pub const GGML_OP_ARGMAX: ggml_op = 18;
pub const GGML_OP_COUNT_EQUAL: ggml_op = 19;
pub const GGML_OP_REPEAT: ggml_op = 20;
pub const GGML_OP_REPEAT_BACK: ggml_op = 21;
pub const GGML_OP_CONCAT: ggml_op = 22;
pub const GGML_OP_SILU_BACK: ggml_op = 23;
pub const GGML_OP_NORM: ggml_op = 24;
pub const GGML_OP_RMS_NORM: ggml_op = 25;
pub const GGML_OP_RMS_NORM_BACK: ggml_op = 26;
pub const GGML_OP_GROUP_NORM: ggml_op = 27;
pub const GGML_OP_L2_NORM: ggml_op = 28;
pub const GGML_OP_MUL_MAT: ggml_op = 29;
pub const GGML_OP_MUL_MAT_ID: ggml_op = 30;
pub const GGML_OP_OUT_PROD: ggml_op = 31;
pub const GGML_OP_SCALE: ggml_op = 32;
pub const GGML_OP_SET: ggml_op = 33;
pub const GGML_OP_CPY: ggml_op = 34;
pub const GGML_OP_CONT: ggml_op = 35;
pub const GGML_OP_RESHAPE: ggml_op = 36;
pub const GGML_OP_VIEW: ggml_op = 37;
pub const GGML_OP_PERMUTE: ggml_op = 38;
pub const GGML_OP_TRANSPOSE: ggml_op = 39;
pub const GGML_OP_GET_ROWS: ggml_op = 40;
pub const GGML_OP_GET_ROWS_BACK: ggml_op = 41;
pub const GGML_OP_SET_ROWS: ggml_op = 42;
pub const GGML_OP_DIAG: ggml_op = 43;
pub const GGML_OP_DIAG_MASK_INF: ggml_op = 44;
pub const GGML_OP_DIAG_MASK_ZERO: ggml_op = 45;
pub const GGML_OP_SOFT_MAX: ggml_op = 46;
pub const GGML_OP_SOFT_MAX_BACK: ggml_op = 47;
pub const GGML_OP_ROPE: ggml_op = 48;
pub const GGML_OP_ROPE_BACK: ggml_op = 49;
pub const GGML_OP_CLAMP: ggml_op = 50;
pub const GGML_OP_CONV_TRANSPOSE_1D: ggml_op = 51;
pub const GGML_OP_IM2COL: ggml_op = 52;
pub const GGML_OP_IM2COL_BACK: ggml_op = 53;
pub const GGML_OP_IM2COL_3D: ggml_op = 54;
pub const GGML_OP_COL2IM_1D: ggml_op = 55;
pub const GGML_OP_CONV_2D: ggml_op = 56;
pub const GGML_OP_CONV_3D: ggml_op = 57;
pub const GGML_OP_CONV_2D_DW: ggml_op = 58;
pub const GGML_OP_CONV_TRANSPOSE_2D: ggml_op = 59;
pub const GGML_OP_POOL_1D: ggml_op = 60;
pub const GGML_OP_POOL_2D: ggml_op = 61;
pub const GGML_OP_POOL_2D_BACK: ggml_op = 62;
pub const GGML_OP_UPSCALE: ggml_op = 63;
pub const GGML_OP_PAD: ggml_op = 64;
pub const GGML_OP_PAD_REFLECT_1D: ggml_op = 65;
pub const GGML_OP_ROLL: ggml_op = 66;
pub const GGML_OP_ARANGE: ggml_op = 67;
pub const GGML_OP_TIMESTEP_EMBEDDING: ggml_op = 68;
pub const GGML_OP_ARGSORT: ggml_op = 69;
pub const GGML_OP_TOP_K: ggml_op = 70;
pub const GGML_OP_LEAKY_RELU: ggml_op = 71;
pub const GGML_OP_TRI: ggml_op = 72;
pub const GGML_OP_FILL: ggml_op = 73;
pub const GGML_OP_FLASH_ATTN_EXT: ggml_op = 74;
pub const GGML_OP_FLASH_ATTN_BACK: ggml_op = 75;
pub const GGML_OP_SSM_CONV: ggml_op = 76;
pub const GGML_OP_SSM_SCAN: ggml_op = 77;
pub const GGML_OP_WIN_PART: ggml_op = 78;
pub const GGML_OP_WIN_UNPART: ggml_op = 79;
pub const GGML_OP_GET_REL_POS: ggml_op = 80;
pub const GGML_OP_ADD_REL_POS: ggml_op = 81;
pub const GGML_OP_RWKV_WKV6: ggml_op = 82;
pub const GGML_OP_GATED_LINEAR_ATTN: ggml_op = 83;
pub const GGML_OP_RWKV_WKV7: ggml_op = 84;
pub const GGML_OP_SOLVE_TRI: ggml_op = 85;
pub const GGML_OP_GATED_DELTA_NET: ggml_op = 86;
pub const GGML_OP_LIGHTNING_INDEXER: ggml_op = 87;
pub const GGML_OP_DSV4_HC_COMB: ggml_op = 88;
pub const GGML_OP_DSV4_HC_PRE: ggml_op = 89;
pub const GGML_OP_DSV4_HC_POST: ggml_op = 90;
pub const GGML_OP_UNARY: ggml_op = 91;
pub const GGML_OP_MAP_CUSTOM1: ggml_op = 92;
pub const GGML_OP_MAP_CUSTOM2: ggml_op = 93;
pub const GGML_OP_MAP_CUSTOM3: ggml_op = 94;
pub const GGML_OP_CUSTOM: ggml_op = 95;
pub const GGML_OP_CROSS_ENTROPY_LOSS: ggml_op = 96;
pub const GGML_OP_CROSS_ENTROPY_LOSS_BACK: ggml_op = 97;
pub const GGML_OP_OPT_STEP_ADAMW: ggml_op = 98;
pub const GGML_OP_OPT_STEP_SGD: ggml_op = 99;
pub const GGML_OP_GLU: ggml_op = 100;
pub const GGML_OP_COUNT: ggml_op = 101;
pub type ggml_op = ::core::ffi::c_uint;
pub const GGML_LOG_LEVEL_NONE: ggml_log_level = 0;
pub const GGML_LOG_LEVEL_DEBUG: ggml_log_level = 1;
pub const GGML_LOG_LEVEL_INFO: ggml_log_level = 2;
pub const GGML_LOG_LEVEL_WARN: ggml_log_level = 3;
pub const GGML_LOG_LEVEL_ERROR: ggml_log_level = 4;
pub const GGML_LOG_LEVEL_CONT: ggml_log_level = 5;
pub type ggml_log_level = ::core::ffi::c_uint;
pub type ggml_abort_callback = ::core::option::Option<unsafe extern "C" fn(data: *mut ::core::ffi::c_void) -> bool>;
pub type ggml_log_callback = ::core::option::Option<
    unsafe extern "C" fn(level: ggml_log_level, text: *const ::core::ffi::c_char, user_data: *mut ::core::ffi::c_void),
>;
#[repr(C)]
#[derive(Debug)]
pub struct ggml_threadpool {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct ggml_backend_buffer_type {
    _unused: [u8; 0],
}
pub type ggml_backend_buffer_type_t = *mut ggml_backend_buffer_type;
#[repr(C)]
#[derive(Debug)]
pub struct ggml_backend_device {
    _unused: [u8; 0],
}
pub type ggml_backend_dev_t = *mut ggml_backend_device;
pub const GGML_BACKEND_DEVICE_TYPE_CPU: ggml_backend_dev_type = 0;
pub const GGML_BACKEND_DEVICE_TYPE_GPU: ggml_backend_dev_type = 1;
pub const GGML_BACKEND_DEVICE_TYPE_IGPU: ggml_backend_dev_type = 2;
pub const GGML_BACKEND_DEVICE_TYPE_ACCEL: ggml_backend_dev_type = 3;
pub const GGML_BACKEND_DEVICE_TYPE_META: ggml_backend_dev_type = 4;
pub type ggml_backend_dev_type = ::core::ffi::c_uint;
pub type ggml_backend_sched_eval_callback = ::core::option::Option<
    unsafe extern "C" fn(t: *mut ggml_tensor, ask: bool, user_data: *mut ::core::ffi::c_void) -> bool,
>;
#[repr(C)]
#[derive(Debug)]
pub struct llama_vocab {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct llama_model {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct llama_context {
    _unused: [u8; 0],
}
pub type llama_pos = i32;
pub type llama_token = i32;
pub type llama_seq_id = i32;
pub const LLAMA_VOCAB_TYPE_NONE: llama_vocab_type = 0;
pub const LLAMA_VOCAB_TYPE_SPM: llama_vocab_type = 1;
pub const LLAMA_VOCAB_TYPE_BPE: llama_vocab_type = 2;
pub const LLAMA_VOCAB_TYPE_WPM: llama_vocab_type = 3;
pub const LLAMA_VOCAB_TYPE_UGM: llama_vocab_type = 4;
pub const LLAMA_VOCAB_TYPE_RWKV: llama_vocab_type = 5;
pub const LLAMA_VOCAB_TYPE_PLAMO2: llama_vocab_type = 6;
pub const LLAMA_VOCAB_TYPE_TEST: llama_vocab_type = 7;
pub type llama_vocab_type = ::core::ffi::c_uint;
pub const LLAMA_ROPE_TYPE_NONE: llama_rope_type = -1;
pub const LLAMA_ROPE_TYPE_NORM: llama_rope_type = 0;
pub const LLAMA_ROPE_TYPE_NEOX: llama_rope_type = 2;
pub const LLAMA_ROPE_TYPE_MROPE: llama_rope_type = 8;
pub const LLAMA_ROPE_TYPE_IMROPE: llama_rope_type = 40;
pub const LLAMA_ROPE_TYPE_VISION: llama_rope_type = 24;
pub type llama_rope_type = ::core::ffi::c_int;
pub const LLAMA_TOKEN_ATTR_UNDEFINED: llama_token_attr = 0;
pub const LLAMA_TOKEN_ATTR_UNKNOWN: llama_token_attr = 1;
pub const LLAMA_TOKEN_ATTR_UNUSED: llama_token_attr = 2;
pub const LLAMA_TOKEN_ATTR_NORMAL: llama_token_attr = 4;
pub const LLAMA_TOKEN_ATTR_CONTROL: llama_token_attr = 8;
pub const LLAMA_TOKEN_ATTR_USER_DEFINED: llama_token_attr = 16;
pub const LLAMA_TOKEN_ATTR_BYTE: llama_token_attr = 32;
pub const LLAMA_TOKEN_ATTR_NORMALIZED: llama_token_attr = 64;
pub const LLAMA_TOKEN_ATTR_LSTRIP: llama_token_attr = 128;
pub const LLAMA_TOKEN_ATTR_RSTRIP: llama_token_attr = 256;
pub const LLAMA_TOKEN_ATTR_SINGLE_WORD: llama_token_attr = 512;
pub type llama_token_attr = ::core::ffi::c_uint;
pub const LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED: llama_rope_scaling_type = -1;
pub const LLAMA_ROPE_SCALING_TYPE_NONE: llama_rope_scaling_type = 0;
pub const LLAMA_ROPE_SCALING_TYPE_LINEAR: llama_rope_scaling_type = 1;
pub const LLAMA_ROPE_SCALING_TYPE_YARN: llama_rope_scaling_type = 2;
pub const LLAMA_ROPE_SCALING_TYPE_LONGROPE: llama_rope_scaling_type = 3;
pub const LLAMA_ROPE_SCALING_TYPE_MAX_VALUE: llama_rope_scaling_type = 3;
pub type llama_rope_scaling_type = ::core::ffi::c_int;
pub const LLAMA_POOLING_TYPE_UNSPECIFIED: llama_pooling_type = -1;
pub const LLAMA_POOLING_TYPE_NONE: llama_pooling_type = 0;
pub const LLAMA_POOLING_TYPE_MEAN: llama_pooling_type = 1;
pub const LLAMA_POOLING_TYPE_CLS: llama_pooling_type = 2;
pub const LLAMA_POOLING_TYPE_LAST: llama_pooling_type = 3;
pub const LLAMA_POOLING_TYPE_RANK: llama_pooling_type = 4;
pub type llama_pooling_type = ::core::ffi::c_int;
pub const LLAMA_ATTENTION_TYPE_UNSPECIFIED: llama_attention_type = -1;
pub const LLAMA_ATTENTION_TYPE_CAUSAL: llama_attention_type = 0;
pub const LLAMA_ATTENTION_TYPE_NON_CAUSAL: llama_attention_type = 1;
pub type llama_attention_type = ::core::ffi::c_int;
pub const LLAMA_FLASH_ATTN_TYPE_AUTO: llama_flash_attn_type = -1;
pub const LLAMA_FLASH_ATTN_TYPE_DISABLED: llama_flash_attn_type = 0;
pub const LLAMA_FLASH_ATTN_TYPE_ENABLED: llama_flash_attn_type = 1;
pub type llama_flash_attn_type = ::core::ffi::c_int;
pub const LLAMA_SPLIT_MODE_NONE: llama_split_mode = 0;
pub const LLAMA_SPLIT_MODE_LAYER: llama_split_mode = 1;
pub const LLAMA_SPLIT_MODE_ROW: llama_split_mode = 2;
pub const LLAMA_SPLIT_MODE_TENSOR: llama_split_mode = 3;
pub type llama_split_mode = ::core::ffi::c_uint;
pub const LLAMA_LOAD_MODE_AUTO: llama_load_mode = -1;
pub const LLAMA_LOAD_MODE_NONE: llama_load_mode = 0;
pub const LLAMA_LOAD_MODE_MMAP: llama_load_mode = 1;
pub const LLAMA_LOAD_MODE_MLOCK: llama_load_mode = 2;
pub const LLAMA_LOAD_MODE_MMAP_MLOCK: llama_load_mode = 3;
pub const LLAMA_LOAD_MODE_DIRECT_IO: llama_load_mode = 4;
pub type llama_load_mode = ::core::ffi::c_int;
pub const LLAMA_LAZY_MODE_OFF: llama_lazy_mode = 0;
pub const LLAMA_LAZY_MODE_AUTO: llama_lazy_mode = 1;
pub const LLAMA_LAZY_MODE_ON: llama_lazy_mode = 2;
pub type llama_lazy_mode = ::core::ffi::c_uint;
pub const LLAMA_CONTEXT_TYPE_DEFAULT: llama_context_type = 0;
pub const LLAMA_CONTEXT_TYPE_MTP: llama_context_type = 1;
pub type llama_context_type = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct llama_token_data {
    pub id: llama_token,
    pub logit: f32,
    pub p: f32,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct llama_token_data_array {
    pub data: *mut llama_token_data,
    pub size: usize,
    pub selected: i64,
    pub sorted: bool,
}
impl Default for llama_token_data_array {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type llama_progress_callback =
    ::core::option::Option<unsafe extern "C" fn(progress: f32, user_data: *mut ::core::ffi::c_void) -> bool>;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct llama_batch {
    pub n_tokens: i32,
    pub token: *mut llama_token,
    pub embd: *mut f32,
    pub pos: *mut llama_pos,
    pub n_seq_id: *mut i32,
    pub seq_id: *mut *mut llama_seq_id,
    pub logits: *mut i8,
}
impl Default for llama_batch {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub const LLAMA_KV_OVERRIDE_TYPE_INT: llama_model_kv_override_type = 0;
pub const LLAMA_KV_OVERRIDE_TYPE_FLOAT: llama_model_kv_override_type = 1;
pub const LLAMA_KV_OVERRIDE_TYPE_BOOL: llama_model_kv_override_type = 2;
pub const LLAMA_KV_OVERRIDE_TYPE_STR: llama_model_kv_override_type = 3;
pub type llama_model_kv_override_type = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct llama_model_kv_override {
    pub tag: llama_model_kv_override_type,
    pub key: [::core::ffi::c_char; 128usize],
    pub __bindgen_anon_1: llama_model_kv_override__bindgen_ty_1,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union llama_model_kv_override__bindgen_ty_1 {
    pub val_i64: i64,
    pub val_f64: f64,
    pub val_bool: bool,
    pub val_str: [::core::ffi::c_char; 128usize],
}
impl Default for llama_model_kv_override__bindgen_ty_1 {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for llama_model_kv_override {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct llama_model_tensor_buft_override {
    pub pattern: *const ::core::ffi::c_char,
    pub buft: ggml_backend_buffer_type_t,
}
impl Default for llama_model_tensor_buft_override {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct llama_model_params {
    pub devices: *mut ggml_backend_dev_t,
    pub tensor_buft_overrides: *const llama_model_tensor_buft_override,
    pub n_gpu_layers: i32,
    pub split_mode: llama_split_mode,
    pub load_mode: llama_load_mode,
    pub lazy_mode: llama_lazy_mode,
    pub main_gpu: i32,
    pub tensor_split: *const f32,
    pub progress_callback: llama_progress_callback,
    pub progress_callback_user_data: *mut ::core::ffi::c_void,
    pub kv_overrides: *const llama_model_kv_override,
    pub vocab_only: bool,
    pub check_tensors: bool,
    pub use_extra_bufts: bool,
    pub no_host: bool,
    pub no_alloc: bool,
    pub load_mtp: bool,
}
impl Default for llama_model_params {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct llama_sampler_seq_config {
    pub seq_id: llama_seq_id,
    pub sampler: *mut llama_sampler,
}
impl Default for llama_sampler_seq_config {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct llama_context_params {
    pub n_ctx: u32,
    pub n_batch: u32,
    pub n_ubatch: u32,
    pub n_seq_max: u32,
    pub n_rs_seq: u32,
    pub n_outputs_max: u32,
    pub n_outputs_max_per_seq: u32,
    pub n_threads: i32,
    pub n_threads_batch: i32,
    pub ctx_type: llama_context_type,
    pub rope_scaling_type: llama_rope_scaling_type,
    pub pooling_type: llama_pooling_type,
    pub attention_type: llama_attention_type,
    pub flash_attn_type: llama_flash_attn_type,
    pub rope_freq_base: f32,
    pub rope_freq_scale: f32,
    pub yarn_ext_factor: f32,
    pub yarn_attn_factor: f32,
    pub yarn_beta_fast: f32,
    pub yarn_beta_slow: f32,
    pub yarn_orig_ctx: u32,
    pub defrag_thold: f32,
    pub cb_eval: ggml_backend_sched_eval_callback,
    pub cb_eval_user_data: *mut ::core::ffi::c_void,
    pub type_k: ggml_type,
    pub type_v: ggml_type,
    pub abort_callback: ggml_abort_callback,
    pub abort_callback_data: *mut ::core::ffi::c_void,
    pub embeddings: bool,
    pub offload_kqv: bool,
    pub no_perf: bool,
    pub op_offload: bool,
    pub swa_full: bool,
    pub kv_unified: bool,
    pub samplers: *mut llama_sampler_seq_config,
    pub n_samplers: usize,
    pub ctx_other: *mut llama_context,
}
impl Default for llama_context_params {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug)]
pub struct llama_adapter_lora {
    _unused: [u8; 0],
}
pub type llama_sampler_context_t = *mut ::core::ffi::c_void;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct llama_sampler_data {
    pub logits: *mut ggml_tensor,
    pub probs: *mut ggml_tensor,
    pub sampled: *mut ggml_tensor,
    pub candidates: *mut ggml_tensor,
}
impl Default for llama_sampler_data {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct llama_sampler_i {
    pub name: ::core::option::Option<unsafe extern "C" fn(smpl: *const llama_sampler) -> *const ::core::ffi::c_char>,
    pub accept: ::core::option::Option<unsafe extern "C" fn(smpl: *mut llama_sampler, token: llama_token)>,
    pub apply:
        ::core::option::Option<unsafe extern "C" fn(smpl: *mut llama_sampler, cur_p: *mut llama_token_data_array)>,
    pub reset: ::core::option::Option<unsafe extern "C" fn(smpl: *mut llama_sampler)>,
    pub clone: ::core::option::Option<unsafe extern "C" fn(smpl: *const llama_sampler) -> *mut llama_sampler>,
    pub free: ::core::option::Option<unsafe extern "C" fn(smpl: *mut llama_sampler)>,
    pub backend_init: ::core::option::Option<
        unsafe extern "C" fn(
            smpl: *mut llama_sampler,
            buft: ggml_backend_buffer_type_t,
            n_outputs_max_per_seq: u32,
        ) -> bool,
    >,
    pub backend_accept: ::core::option::Option<
        unsafe extern "C" fn(
            smpl: *mut llama_sampler,
            ctx: *mut ggml_context,
            gf: *mut ggml_cgraph,
            selected_token: *mut ggml_tensor,
        ),
    >,
    pub backend_apply: ::core::option::Option<
        unsafe extern "C" fn(
            smpl: *mut llama_sampler,
            ctx: *mut ggml_context,
            gf: *mut ggml_cgraph,
            data: *mut llama_sampler_data,
        ),
    >,
    pub backend_set_input: ::core::option::Option<unsafe extern "C" fn(smpl: *mut llama_sampler)>,
    pub backend_reset: ::core::option::Option<unsafe extern "C" fn(smpl: *mut llama_sampler)>,
    pub copy_state: ::core::option::Option<unsafe extern "C" fn(src: *const llama_sampler, dst: *mut llama_sampler)>,
}
pub const INFER_LLAMA_OK: infer_llama_status = 0;
pub const INFER_LLAMA_EXCEPTION: infer_llama_status = -1;
pub const INFER_LLAMA_MEMORY: infer_llama_status = -2;
pub const INFER_LLAMA_UNKNOWN: infer_llama_status = -3;
pub const INFER_LLAMA_ARGUMENT: infer_llama_status = -4;
pub const INFER_LLAMA_FAILED: infer_llama_status = -5;
pub const INFER_LLAMA_IO: infer_llama_status = -6;
pub const INFER_LLAMA_UNSUPPORTED: infer_llama_status = -7;
pub const INFER_LLAMA_TOO_SMALL: infer_llama_status = -8;
pub type infer_llama_status = ::core::ffi::c_int;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct infer_llama_error {
    pub code: i32,
    pub message: [::core::ffi::c_char; 1024usize],
}
impl Default for infer_llama_error {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct infer_llama_field {
    pub type_: *const ::core::ffi::c_char,
    pub field: *const ::core::ffi::c_char,
    pub offset: u32,
    pub size: u32,
}
impl Default for infer_llama_field {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct infer_llama_limits {
    pub max_devices: u32,
    pub max_sequences: u32,
    pub max_threads: u32,
    pub supports_mmap: bool,
    pub supports_mlock: bool,
    pub supports_gpu_offload: bool,
    pub supports_rpc: bool,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct infer_llama_device {
    pub handle: ggml_backend_dev_t,
    pub name: *const ::core::ffi::c_char,
    pub description: *const ::core::ffi::c_char,
    pub id: *const ::core::ffi::c_char,
    pub backend: *const ::core::ffi::c_char,
    pub type_: i32,
    pub memory_free: u64,
    pub memory_total: u64,
}
impl Default for infer_llama_device {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct infer_llama_model_info {
    pub n_ctx_train: i32,
    pub n_embd: i32,
    pub n_embd_inp: i32,
    pub n_embd_out: i32,
    pub n_layer: i32,
    pub n_head: i32,
    pub n_head_kv: i32,
    pub n_swa: i32,
    pub rope_type: i32,
    pub rope_freq_scale_train: f32,
    pub n_cls_out: u32,
    pub ftype: i32,
    pub n_params: u64,
    pub size: u64,
    pub decoder_start_token: i32,
    pub has_encoder: bool,
    pub has_decoder: bool,
    pub is_recurrent: bool,
    pub is_hybrid: bool,
    pub is_diffusion: bool,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct infer_llama_vocab_info {
    pub type_: i32,
    pub n_tokens: i32,
    pub bos: i32,
    pub eos: i32,
    pub eot: i32,
    pub sep: i32,
    pub nl: i32,
    pub pad: i32,
    pub mask: i32,
    pub fim_pre: i32,
    pub fim_suf: i32,
    pub fim_mid: i32,
    pub fim_pad: i32,
    pub fim_rep: i32,
    pub fim_sep: i32,
    pub add_bos: bool,
    pub add_eos: bool,
    pub add_sep: bool,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct infer_llama_token_info {
    pub text: *const ::core::ffi::c_char,
    pub score: f32,
    pub attr: u32,
    pub is_eog: bool,
    pub is_control: bool,
}
impl Default for infer_llama_token_info {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct infer_llama_context_info {
    pub n_ctx: u32,
    pub n_ctx_seq: u32,
    pub n_batch: u32,
    pub n_ubatch: u32,
    pub n_seq_max: u32,
    pub n_threads: i32,
    pub n_threads_batch: i32,
    pub pooling_type: i32,
    pub causal_attn: bool,
    pub has_memory: bool,
    pub can_shift: bool,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct infer_llama_memory {
    pub name: *const ::core::ffi::c_char,
    pub is_host: bool,
    pub model: u64,
    pub context: u64,
    pub compute: u64,
}
impl Default for infer_llama_memory {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug)]
pub struct infer_llama_sampler {
    _unused: [u8; 0],
}
pub type infer_llama_fatal_callback = ::core::option::Option<unsafe extern "C" fn(message: *const ::core::ffi::c_char)>;
pub type infer_llama_write_callback = ::core::option::Option<
    unsafe extern "C" fn(bytes: *const u8, size: usize, user_data: *mut ::core::ffi::c_void) -> bool,
>;
pub type infer_llama_read_callback = ::core::option::Option<
    unsafe extern "C" fn(bytes: *mut u8, size: usize, user_data: *mut ::core::ffi::c_void) -> bool,
>;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct infer_llama_table {
    pub size: u32,
    pub version: u32,
    pub commit: *const ::core::ffi::c_char,
    pub llama_version: *const ::core::ffi::c_char,
    pub variant: *const ::core::ffi::c_char,
    pub fields: *const infer_llama_field,
    pub n_fields: usize,
    pub sizeof_error: u32,
    pub sizeof_model_params: u32,
    pub sizeof_context_params: u32,
    pub sizeof_batch: u32,
    pub sizeof_kv_override: u32,
    pub sizeof_limits: u32,
    pub sizeof_device: u32,
    pub sizeof_model_info: u32,
    pub sizeof_vocab_info: u32,
    pub sizeof_token_info: u32,
    pub sizeof_context_info: u32,
    pub sizeof_memory: u32,
    pub backend_init: ::core::option::Option<unsafe extern "C" fn(error: *mut infer_llama_error) -> i32>,
    pub log_set:
        ::core::option::Option<unsafe extern "C" fn(callback: ggml_log_callback, user_data: *mut ::core::ffi::c_void)>,
    pub fatal_set: ::core::option::Option<unsafe extern "C" fn(callback: infer_llama_fatal_callback)>,
    pub time_us: ::core::option::Option<unsafe extern "C" fn() -> i64>,
    pub limits: ::core::option::Option<
        unsafe extern "C" fn(out: *mut infer_llama_limits, error: *mut infer_llama_error) -> i32,
    >,
    pub system_info: ::core::option::Option<
        unsafe extern "C" fn(
            buf: *mut ::core::ffi::c_char,
            cap: usize,
            len: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub device_count: ::core::option::Option<unsafe extern "C" fn() -> usize>,
    pub device_info: ::core::option::Option<
        unsafe extern "C" fn(index: usize, out: *mut infer_llama_device, error: *mut infer_llama_error) -> i32,
    >,
    pub model_default_params: ::core::option::Option<unsafe extern "C" fn(out: *mut llama_model_params)>,
    pub model_load_from_file: ::core::option::Option<
        unsafe extern "C" fn(
            path: *const ::core::ffi::c_char,
            params: *const llama_model_params,
            out: *mut *mut llama_model,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub model_load_from_splits: ::core::option::Option<
        unsafe extern "C" fn(
            paths: *const *const ::core::ffi::c_char,
            n_paths: usize,
            params: *const llama_model_params,
            out: *mut *mut llama_model,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub model_load_from_fd: ::core::option::Option<
        unsafe extern "C" fn(
            fd: i32,
            params: *const llama_model_params,
            out: *mut *mut llama_model,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub model_free: ::core::option::Option<unsafe extern "C" fn(model: *mut llama_model)>,
    pub model_info: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const llama_model,
            out: *mut infer_llama_model_info,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub model_desc: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const llama_model,
            buf: *mut ::core::ffi::c_char,
            cap: usize,
            len: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub model_meta_count: ::core::option::Option<unsafe extern "C" fn(model: *const llama_model) -> i32>,
    pub model_meta_key: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const llama_model,
            index: i32,
            buf: *mut ::core::ffi::c_char,
            cap: usize,
            len: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub model_meta_val: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const llama_model,
            index: i32,
            buf: *mut ::core::ffi::c_char,
            cap: usize,
            len: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub model_chat_template: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const llama_model,
            name: *const ::core::ffi::c_char,
            out: *mut *const ::core::ffi::c_char,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub model_cls_label: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const llama_model,
            index: u32,
            out: *mut *const ::core::ffi::c_char,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub ftype_name: ::core::option::Option<unsafe extern "C" fn(ftype: i32) -> *const ::core::ffi::c_char>,
    pub model_layer_devices: ::core::option::Option<
        unsafe extern "C" fn(
            model: *const llama_model,
            out: *mut ggml_backend_dev_t,
            cap: usize,
            n: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub model_vocab: ::core::option::Option<unsafe extern "C" fn(model: *const llama_model) -> *const llama_vocab>,
    pub vocab_info: ::core::option::Option<
        unsafe extern "C" fn(
            vocab: *const llama_vocab,
            out: *mut infer_llama_vocab_info,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub vocab_token: ::core::option::Option<
        unsafe extern "C" fn(
            vocab: *const llama_vocab,
            token: i32,
            out: *mut infer_llama_token_info,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub tokenize: ::core::option::Option<
        unsafe extern "C" fn(
            vocab: *const llama_vocab,
            text: *const ::core::ffi::c_char,
            text_len: usize,
            tokens: *mut i32,
            cap: usize,
            add_special: bool,
            parse_special: bool,
            n: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub token_to_piece: ::core::option::Option<
        unsafe extern "C" fn(
            vocab: *const llama_vocab,
            token: i32,
            special: bool,
            buf: *mut ::core::ffi::c_char,
            cap: usize,
            len: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub detokenize: ::core::option::Option<
        unsafe extern "C" fn(
            vocab: *const llama_vocab,
            tokens: *const i32,
            n_tokens: usize,
            remove_special: bool,
            unparse_special: bool,
            buf: *mut ::core::ffi::c_char,
            cap: usize,
            len: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub context_default_params: ::core::option::Option<unsafe extern "C" fn(out: *mut llama_context_params)>,
    pub context_new: ::core::option::Option<
        unsafe extern "C" fn(
            model: *mut llama_model,
            params: *const llama_context_params,
            out: *mut *mut llama_context,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub context_free: ::core::option::Option<unsafe extern "C" fn(context: *mut llama_context)>,
    pub context_info: ::core::option::Option<
        unsafe extern "C" fn(
            context: *const llama_context,
            out: *mut infer_llama_context_info,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub set_threads: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            n_threads: i32,
            n_threads_batch: i32,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub set_embeddings: ::core::option::Option<
        unsafe extern "C" fn(context: *mut llama_context, on: bool, error: *mut infer_llama_error) -> i32,
    >,
    pub set_causal_attn: ::core::option::Option<
        unsafe extern "C" fn(context: *mut llama_context, on: bool, error: *mut infer_llama_error) -> i32,
    >,
    pub set_abort_callback: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            callback: ggml_abort_callback,
            user_data: *mut ::core::ffi::c_void,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub threadpool_new: ::core::option::Option<
        unsafe extern "C" fn(
            n_threads: i32,
            poll: u32,
            out: *mut *mut ggml_threadpool,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub threadpool_free: ::core::option::Option<unsafe extern "C" fn(pool: *mut ggml_threadpool)>,
    pub threadpool_attach: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            pool: *mut ggml_threadpool,
            batch: *mut ggml_threadpool,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub memory_breakdown: ::core::option::Option<
        unsafe extern "C" fn(
            context: *const llama_context,
            out: *mut infer_llama_memory,
            cap: usize,
            n: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub decode: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            batch: *const llama_batch,
            result: *mut i32,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub encode: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            batch: *const llama_batch,
            result: *mut i32,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub synchronize:
        ::core::option::Option<unsafe extern "C" fn(context: *mut llama_context, error: *mut infer_llama_error) -> i32>,
    pub logits: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            index: i32,
            out: *mut *const f32,
            len: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub embeddings: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            index: i32,
            out: *mut *const f32,
            len: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub embeddings_seq: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            seq: i32,
            out: *mut *const f32,
            len: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub memory_clear: ::core::option::Option<
        unsafe extern "C" fn(context: *mut llama_context, data: bool, error: *mut infer_llama_error) -> i32,
    >,
    pub memory_seq_rm: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            seq: i32,
            p0: i32,
            p1: i32,
            removed: *mut bool,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub memory_seq_cp: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            from: i32,
            to: i32,
            p0: i32,
            p1: i32,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub memory_seq_add: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            seq: i32,
            p0: i32,
            p1: i32,
            delta: i32,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub memory_seq_pos_min: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            seq: i32,
            pos: *mut i32,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub memory_seq_pos_max: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            seq: i32,
            pos: *mut i32,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub memory_update:
        ::core::option::Option<unsafe extern "C" fn(context: *mut llama_context, error: *mut infer_llama_error) -> i32>,
    pub state_seq_size: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            seq: i32,
            flags: u32,
            size: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub state_seq_get: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            seq: i32,
            flags: u32,
            buf: *mut u8,
            cap: usize,
            len: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub state_seq_set: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            seq: i32,
            flags: u32,
            buf: *const u8,
            len: usize,
            used: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub state_seq_write: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            seq: i32,
            callback: infer_llama_write_callback,
            user_data: *mut ::core::ffi::c_void,
            len: *mut u64,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub state_seq_read: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            seq: i32,
            last: i32,
            callback: infer_llama_read_callback,
            user_data: *mut ::core::ffi::c_void,
            len: *mut u64,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub adapter_load: ::core::option::Option<
        unsafe extern "C" fn(
            model: *mut llama_model,
            path: *const ::core::ffi::c_char,
            out: *mut *mut llama_adapter_lora,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub adapter_free: ::core::option::Option<unsafe extern "C" fn(adapter: *mut llama_adapter_lora)>,
    pub adapter_meta_count: ::core::option::Option<unsafe extern "C" fn(adapter: *const llama_adapter_lora) -> i32>,
    pub adapter_meta_key: ::core::option::Option<
        unsafe extern "C" fn(
            adapter: *const llama_adapter_lora,
            index: i32,
            buf: *mut ::core::ffi::c_char,
            cap: usize,
            len: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub adapter_meta_val: ::core::option::Option<
        unsafe extern "C" fn(
            adapter: *const llama_adapter_lora,
            index: i32,
            buf: *mut ::core::ffi::c_char,
            cap: usize,
            len: *mut usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub adapters_set: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            adapters: *const *mut llama_adapter_lora,
            scales: *const f32,
            n: usize,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub adapter_load_from_fd: ::core::option::Option<
        unsafe extern "C" fn(
            model: *mut llama_model,
            fd: i32,
            out: *mut *mut llama_adapter_lora,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub sampler_new: ::core::option::Option<
        unsafe extern "C" fn(
            greedy: bool,
            min_p: bool,
            candidates: u32,
            out: *mut *mut infer_llama_sampler,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub sampler_free: ::core::option::Option<unsafe extern "C" fn(sampler: *mut infer_llama_sampler)>,
    pub sampler_attach: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            seq: i32,
            sampler: *mut infer_llama_sampler,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub sampler_inputs: ::core::option::Option<
        unsafe extern "C" fn(
            sampler: *mut infer_llama_sampler,
            uniform: f32,
            scale: f32,
            least: f32,
            top_k: u32,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
    pub sampled: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut llama_context,
            index: i32,
            token: *mut i32,
            logprob: *mut f32,
            error: *mut infer_llama_error,
        ) -> i32,
    >,
}
impl Default for infer_llama_table {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct ggml_backend_buffer {
    pub _address: u8,
}
unsafe extern "C" {
    pub fn infer_llama_api(version: u32) -> *const infer_llama_table;
}
