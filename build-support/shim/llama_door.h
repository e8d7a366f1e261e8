// The door to llama.cpp: one exported function, `infer_llama_api`, that returns a table of functions.
//
// Everything this project asks of llama.cpp goes through the table, so that it can be linked, loaded or faked alike,
// and so that nothing but `infer_llama_api` needs to be a global symbol.
//
// What every entry keeps to
// - Nothing is thrown: an exception becomes a status and a message.
// - An entry that can fail returns a status, INFER_LLAMA_OK or one of the negative codes below, and takes an
//   `infer_llama_error *` (may be NULL) that is written only when the status is not INFER_LLAMA_OK. Its out parameters are written
//   when the status is INFER_LLAMA_OK; `INFER_LLAMA_TOO_SMALL` writes the wanted length too.
// - Where llama.cpp would abort, read out of bounds or crash on an argument, and that can be seen cheaply, the argument is checked and the
//   status is INFER_LLAMA_ARGUMENT. What cannot be seen from here is said at the entry.
// - A model, context, adapter, sampler, threadpool or vocabulary pointer must be one this table returned and not yet freed. A
//   vocabulary, and every string got from a model, lives as long as the model. A context must not outlive its model, an adapter
//   neither.
// - A context is used by one thread at a time; it may move between threads. A model is immutable once loaded and may be read from several
//   threads at once, except that loading and freeing an adapter need it alone, and so does making a context with a rope_freq_scale that is
//   neither 0 nor the model's own: with YaRN, llama.cpp then writes the model's n_ctx_train.
// - When the process ends by `exit()`, passes and loads that run are stopped, and it is waited until every thread has come out before any
//   static object is destroyed. A thread that calls an entry afterwards waits for the end inside it; the one that ends the process
//   is refused.
// - Callbacks must return normally: they must not throw, unwind or longjmp.
// - Buffers are (pointer, capacity) pairs and may be (NULL, 0).
#ifndef INFER_LLAMA_DOOR_H
#define INFER_LLAMA_DOOR_H

#include "llama.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Raised whenever the table or the meaning of an entry changes.
#define INFER_LLAMA_DOOR_VERSION 2

#define INFER_LLAMA_MESSAGE_SIZE 1024

enum infer_llama_status {
    INFER_LLAMA_OK          =  0,
    INFER_LLAMA_EXCEPTION   = -1, // a C++ exception with a message
    INFER_LLAMA_MEMORY      = -2, // std::bad_alloc, or a length no container can have
    INFER_LLAMA_UNKNOWN     = -3, // an exception of a type nobody knows
    INFER_LLAMA_ARGUMENT    = -4, // refused by the door before llama.cpp saw it
    INFER_LLAMA_FAILED      = -5, // llama.cpp said no and logged why
    INFER_LLAMA_IO          = -6, // the operating system said no
    INFER_LLAMA_UNSUPPORTED = -7, // this model, context or build cannot do that
    INFER_LLAMA_TOO_SMALL   = -8, // the buffer is too small; the wanted length was written
};

typedef struct infer_llama_error {
    int32_t code;                               // the status once more
    char    message[INFER_LLAMA_MESSAGE_SIZE];  // ends with NUL; never cut inside a UTF-8 character
} infer_llama_error;

// One field of a struct that crosses the door, as the C++ compiler laid it out. `field` is "" for the struct itself.
typedef struct infer_llama_field {
    const char * type;
    const char * field;
    uint32_t     offset;
    uint32_t     size;
} infer_llama_field;

typedef struct infer_llama_limits {
    uint32_t max_devices;               // length of llama_model_params.tensor_split
    uint32_t max_sequences;             // largest llama_context_params.n_seq_max
    uint32_t max_threads;
    bool     supports_mmap;
    bool     supports_mlock;
    bool     supports_gpu_offload;
    bool     supports_rpc;
} infer_llama_limits;

typedef struct infer_llama_device {
    ggml_backend_dev_t handle;          // for llama_model_params.devices
    const char *       name;            // these strings live as long as the process
    const char *       description;
    const char *       id;              // NULL where the backend knows none
    const char *       backend;         // name of the backend that drives it
    int32_t            type;            // enum ggml_backend_dev_type
    uint64_t           memory_free;     // bytes, now
    uint64_t           memory_total;    // bytes
} infer_llama_device;

typedef struct infer_llama_model_info {
    int32_t  n_ctx_train;
    int32_t  n_embd;
    int32_t  n_embd_inp;
    int32_t  n_embd_out;
    int32_t  n_layer;
    int32_t  n_head;                    // of the first layer; 0 when there are no layers
    int32_t  n_head_kv;                 // of the first layer; 0 when there are no layers
    int32_t  n_swa;                     // 0: no sliding window
    int32_t  rope_type;                 // enum llama_rope_type
    float    rope_freq_scale_train;
    uint32_t n_cls_out;                 // length of a rank-pooled result
    int32_t  ftype;                     // enum llama_ftype
    uint64_t n_params;
    uint64_t size;                      // bytes of all tensors
    int32_t  decoder_start_token;       // -1: none
    bool     has_encoder;
    bool     has_decoder;
    bool     is_recurrent;
    bool     is_hybrid;
    bool     is_diffusion;
} infer_llama_model_info;

// Special tokens, -1 where the vocabulary has none. Taken from the file as they are: an id may lie outside the vocabulary.
typedef struct infer_llama_vocab_info {
    int32_t type;                       // enum llama_vocab_type
    int32_t n_tokens;
    int32_t bos, eos, eot, sep, nl, pad, mask;
    int32_t fim_pre, fim_suf, fim_mid, fim_pad, fim_rep, fim_sep;
    bool    add_bos, add_eos, add_sep;
} infer_llama_vocab_info;

typedef struct infer_llama_token_info {
    const char * text;                  // as it stands in the file, byte-level BPE not undone
    float        score;
    uint32_t     attr;                  // enum llama_token_attr
    bool         is_eog;
    bool         is_control;
} infer_llama_token_info;

typedef struct infer_llama_context_info {
    uint32_t n_ctx;
    uint32_t n_ctx_seq;
    uint32_t n_batch;
    uint32_t n_ubatch;
    uint32_t n_seq_max;
    int32_t  n_threads;
    int32_t  n_threads_batch;
    int32_t  pooling_type;              // enum llama_pooling_type
    bool     causal_attn;
    bool     has_memory;                // false: encoder only, every memory_ entry is a no-op
    bool     can_shift;
} infer_llama_context_info;

typedef struct infer_llama_memory {
    const char * name;                  // of the buffer type; lives as long as the process
    bool         is_host;
    uint64_t     model;                 // bytes
    uint64_t     context;
    uint64_t     compute;
} infer_llama_memory;

// A way to draw tokens where the logits are computed.
typedef struct infer_llama_sampler infer_llama_sampler;

typedef void (*infer_llama_fatal_callback)(const char * message);

// Takes the next bytes of a state; false stops.
typedef bool (*infer_llama_write_callback)(const uint8_t * bytes, size_t size, void * user_data);
// Fills in the next bytes of a state; false stops. Of at most 8 bytes are the numbers that say what a state is, which are looked at at
// once. What is longer are numbers that nobody looks at before the whole state was read, and that are cleared if it was not.
typedef bool (*infer_llama_read_callback)(uint8_t * bytes, size_t size, void * user_data);

typedef struct infer_llama_table {
    // ---- what a caller checks first; this prefix never changes its shape ----
    uint32_t     size;                  // sizeof(infer_llama_table)
    uint32_t     version;               // INFER_LLAMA_DOOR_VERSION
    const char * commit;                // of llama.cpp, as pinned: llama_version() names none
    const char * llama_version;
    const char * variant;               // "cpu", "vulkan", …
    const infer_llama_field * fields;   // layout of every struct that crosses
    size_t       n_fields;
    uint32_t     sizeof_error;
    uint32_t     sizeof_model_params;
    uint32_t     sizeof_context_params;
    uint32_t     sizeof_batch;
    uint32_t     sizeof_kv_override;
    uint32_t     sizeof_limits;
    uint32_t     sizeof_device;
    uint32_t     sizeof_model_info;
    uint32_t     sizeof_vocab_info;
    uint32_t     sizeof_token_info;
    uint32_t     sizeof_context_info;
    uint32_t     sizeof_memory;

    // ---- the process ----

    // Once, before anything else but log_set and fatal_set.
    int32_t (*backend_init)(infer_llama_error * error);

    // Process-wide, for llama.cpp and ggml. NULL: to stderr. Not while another thread is inside any entry. The callback is called from any
    // thread, with fragments of lines (level GGML_LOG_LEVEL_CONT goes on from the one before).
    void (*log_set)(ggml_log_callback callback, void * user_data);

    // Called with the reason when an assertion of ggml fails, on the thread where it failed; abort() follows. NULL: to stderr.
    // In neither case is a backtrace printed or a debugger started.
    void (*fatal_set)(infer_llama_fatal_callback callback);

    int64_t (*time_us)(void);
    int32_t (*limits)(infer_llama_limits * out, infer_llama_error * error);
    int32_t (*system_info)(char * buf, size_t cap, size_t * len, infer_llama_error * error);
    size_t  (*device_count)(void);
    int32_t (*device_info)(size_t index, infer_llama_device * out, infer_llama_error * error);

    // ---- models ----

    void    (*model_default_params)(struct llama_model_params * out);
    int32_t (*model_load_from_file)(const char * path, const struct llama_model_params * params,
                                    struct llama_model ** out, infer_llama_error * error);
    int32_t (*model_load_from_splits)(const char * const * paths, size_t n_paths, const struct llama_model_params * params,
                                      struct llama_model ** out, infer_llama_error * error);
    // From the start of the file. The descriptor stays the caller's and stays open; its position is moved, so nobody else may
    // read through it meanwhile. A split file is refused by llama.cpp: it has no name to find its siblings by.
    int32_t (*model_load_from_fd)(int32_t fd, const struct llama_model_params * params,
                                  struct llama_model ** out, infer_llama_error * error);
    // NULL is a no-op. Frees the model's adapters too; its contexts must be gone.
    void    (*model_free)(struct llama_model * model);
    int32_t (*model_info)(const struct llama_model * model, infer_llama_model_info * out, infer_llama_error * error);
    int32_t (*model_desc)(const struct llama_model * model, char * buf, size_t cap, size_t * len, infer_llama_error * error);
    int32_t (*model_meta_count)(const struct llama_model * model);
    // Scalars and strings only, arrays are summed up by llama.cpp. `len` is without the NUL, `cap` must be larger than it.
    int32_t (*model_meta_key)(const struct llama_model * model, int32_t index, char * buf, size_t cap, size_t * len,
                              infer_llama_error * error);
    int32_t (*model_meta_val)(const struct llama_model * model, int32_t index, char * buf, size_t cap, size_t * len,
                              infer_llama_error * error);
    // `name` NULL: the default one. `*out` is NULL when there is none.
    int32_t (*model_chat_template)(const struct llama_model * model, const char * name, const char ** out,
                                   infer_llama_error * error);
    // `*out` is NULL when there is none.
    int32_t (*model_cls_label)(const struct llama_model * model, uint32_t index, const char ** out, infer_llama_error * error);
    const char * (*ftype_name)(int32_t ftype);
    // The device of each layer, the output layer last: handles as in infer_llama_device. At most `cap` are written, `*n` is the number there
    // are; 0 of a vocabulary. UNSUPPORTED where the shim was built without llama.cpp's own tree.
    int32_t (*model_layer_devices)(const struct llama_model * model, ggml_backend_dev_t * out, size_t cap, size_t * n,
                                   infer_llama_error * error);

    // ---- vocabulary: safe to use from several threads at once ----

    const struct llama_vocab * (*model_vocab)(const struct llama_model * model);
    int32_t (*vocab_info)(const struct llama_vocab * vocab, infer_llama_vocab_info * out, infer_llama_error * error);
    int32_t (*vocab_token)(const struct llama_vocab * vocab, int32_t token, infer_llama_token_info * out, infer_llama_error * error);
    // On INFER_LLAMA_TOO_SMALL `*n` is the number of tokens wanted.
    int32_t (*tokenize)(const struct llama_vocab * vocab, const char * text, size_t text_len, int32_t * tokens, size_t cap,
                        bool add_special, bool parse_special, size_t * n, infer_llama_error * error);
    // Bytes, no NUL. `special`: render control tokens too.
    int32_t (*token_to_piece)(const struct llama_vocab * vocab, int32_t token, bool special, char * buf, size_t cap, size_t * len,
                              infer_llama_error * error);
    // Bytes, no NUL. The length wanted on INFER_LLAMA_TOO_SMALL is an upper bound: spaces are cleaned afterwards.
    int32_t (*detokenize)(const struct llama_vocab * vocab, const int32_t * tokens, size_t n_tokens, bool remove_special,
                          bool unparse_special, char * buf, size_t cap, size_t * len, infer_llama_error * error);

    // ---- contexts ----

    void    (*context_default_params)(struct llama_context_params * out);
    // Refused here: n_batch, n_ubatch, n_seq_max or threads of 0 or over the limit, a pooling type or cache type that is not one, samplers,
    // ctx_other. Not seen here: a cache larger than memory, which the kernel ends the process for.
    int32_t (*context_new)(struct llama_model * model, const struct llama_context_params * params, struct llama_context ** out,
                           infer_llama_error * error);
    // NULL is a no-op.
    void    (*context_free)(struct llama_context * context);
    int32_t (*context_info)(const struct llama_context * context, infer_llama_context_info * out, infer_llama_error * error);
    int32_t (*set_threads)(struct llama_context * context, int32_t n_threads, int32_t n_threads_batch, infer_llama_error * error);
    int32_t (*set_embeddings)(struct llama_context * context, bool on, infer_llama_error * error);
    int32_t (*set_causal_attn)(struct llama_context * context, bool on, infer_llama_error * error);
    // Polled by the computing threads; true ends the pass with result 2. CPU only. NULL: none. The data must outlive its use.
    int32_t (*set_abort_callback)(struct llama_context * context, ggml_abort_callback callback, void * user_data,
                                  infer_llama_error * error);
    // `poll` 0 (sleep) … 100 (spin). Without one, threads are made anew for every pass.
    int32_t (*threadpool_new)(int32_t n_threads, uint32_t poll, struct ggml_threadpool ** out, infer_llama_error * error);
    // NULL is a no-op. No context may be attached to it.
    void    (*threadpool_free)(struct ggml_threadpool * pool);
    // NULL, NULL detaches. `batch` NULL: the same for both. A pool serves one pass at a time.
    int32_t (*threadpool_attach)(struct llama_context * context, struct ggml_threadpool * pool, struct ggml_threadpool * batch,
                                 infer_llama_error * error);
    // At most `cap` rows are written, `*n` is the number there are. UNSUPPORTED where the shim was built without llama.cpp's own tree.
    int32_t (*memory_breakdown)(const struct llama_context * context, infer_llama_memory * out, size_t cap, size_t * n,
                                infer_llama_error * error);

    // ---- passes ----

    // Status OK means that the call returned; `*result` is then llama_decode's: 0 done, 1 no room (nothing changed), 2 aborted
    // (parts may stay in the memory), -1 invalid batch, below that fatal (parts may stay). After any other status parts may stay as well.
    // Refused here: more tokens than n_batch, more than n_ubatch where a pass cannot be cut, both or neither of token and embd.
    // Not seen here: arrays shorter than they should be.
    int32_t (*decode)(struct llama_context * context, const struct llama_batch * batch, int32_t * result, infer_llama_error * error);
    int32_t (*encode)(struct llama_context * context, const struct llama_batch * batch, int32_t * result, infer_llama_error * error);
    int32_t (*synchronize)(struct llama_context * context, infer_llama_error * error);

    // Rows of the last pass, valid until the next call with this context that is not one of these, context_info or memory_breakdown.
    // `index` is the position in the batch. INFER_LLAMA_FAILED when that position has no such row.
    int32_t (*logits)(struct llama_context * context, int32_t index, const float ** out, size_t * len, infer_llama_error * error);
    int32_t (*embeddings)(struct llama_context * context, int32_t index, const float ** out, size_t * len, infer_llama_error * error);
    // Pooled; `*len` is n_cls_out with rank pooling, else n_embd_out.
    int32_t (*embeddings_seq)(struct llama_context * context, int32_t seq, const float ** out, size_t * len, infer_llama_error * error);

    // ---- memory (the KV cache, or a recurrent state) ----

    int32_t (*memory_clear)(struct llama_context * context, bool data, infer_llama_error * error);
    // Positions [p0, p1), negative: open. `seq` -1: all. `*removed` false: this memory cannot cut a sequence part-way; nothing changed.
    int32_t (*memory_seq_rm)(struct llama_context * context, int32_t seq, int32_t p0, int32_t p1, bool * removed,
                             infer_llama_error * error);
    // Between two streams (kv_unified false) only whole sequences can be copied: p0 and p1 are negative there, else
    // INFER_LLAMA_UNSUPPORTED.
    int32_t (*memory_seq_cp)(struct llama_context * context, int32_t from, int32_t to, int32_t p0, int32_t p1,
                             infer_llama_error * error);
    // INFER_LLAMA_UNSUPPORTED where can_shift is false.
    int32_t (*memory_seq_add)(struct llama_context * context, int32_t seq, int32_t p0, int32_t p1, int32_t delta,
                              infer_llama_error * error);
    // -1: empty.
    int32_t (*memory_seq_pos_min)(struct llama_context * context, int32_t seq, int32_t * pos, infer_llama_error * error);
    int32_t (*memory_seq_pos_max)(struct llama_context * context, int32_t seq, int32_t * pos, infer_llama_error * error);
    // Carries out what is put off until the next pass: copies between streams, and moved positions. The abort callback is not polled. After
    // a failure the sequences whose positions were moved have to be removed. UNSUPPORTED where the shim was built without llama.cpp's own
    // tree, or does not know this kind of memory.
    int32_t (*memory_update)(struct llama_context * context, infer_llama_error * error);

    // ---- the state of one sequence ----

    int32_t (*state_seq_size)(struct llama_context * context, int32_t seq, uint32_t flags, size_t * size, infer_llama_error * error);
    int32_t (*state_seq_get)(struct llama_context * context, int32_t seq, uint32_t flags, uint8_t * buf, size_t cap, size_t * len,
                             infer_llama_error * error);
    // The bytes are trusted: damage is found by luck only. `*used` is how many were read.
    int32_t (*state_seq_set)(struct llama_context * context, int32_t seq, uint32_t flags, const uint8_t * buf, size_t len, size_t * used,
                             infer_llama_error * error);
    // The state piece by piece, without the magic and the number that state_seq_get begins it with; bytes in host memory are given from
    // where they lie. What is pending is carried out first, as by memory_update, and UNSUPPORTED means the same. `callback` NULL: only the
    // length is found. FAILED when the callback has stopped it.
    int32_t (*state_seq_write)(struct llama_context * context, int32_t seq, infer_llama_write_callback callback, void * user_data,
                               uint64_t * len, infer_llama_error * error);
    // The sequence is emptied first, and again when anything fails. `last` is the position the state must end at, -1 for an empty one.
    // Whatever the bytes are, they do no worse than to make the sequence nonsense: counts and positions are checked.
    int32_t (*state_seq_read)(struct llama_context * context, int32_t seq, int32_t last, infer_llama_read_callback callback,
                              void * user_data, uint64_t * len, infer_llama_error * error);

    // ---- LoRA adapters ----

    int32_t (*adapter_load)(struct llama_model * model, const char * path, struct llama_adapter_lora ** out, infer_llama_error * error);
    // NULL is a no-op. Not after its model is freed, not while a context has it set.
    void    (*adapter_free)(struct llama_adapter_lora * adapter);
    int32_t (*adapter_meta_count)(const struct llama_adapter_lora * adapter);
    int32_t (*adapter_meta_key)(const struct llama_adapter_lora * adapter, int32_t index, char * buf, size_t cap, size_t * len,
                                infer_llama_error * error);
    int32_t (*adapter_meta_val)(const struct llama_adapter_lora * adapter, int32_t index, char * buf, size_t cap, size_t * len,
                                infer_llama_error * error);
    // The set for the passes to come; n 0: none. All must belong to the context's model.
    int32_t (*adapters_set)(struct llama_context * context, struct llama_adapter_lora * const * adapters, const float * scales, size_t n,
                            infer_llama_error * error);
    // As model_load_from_fd: from the start of the file; the descriptor stays the caller's, its position is moved.
    int32_t (*adapter_load_from_fd)(struct llama_model * model, int32_t fd, struct llama_adapter_lora ** out, infer_llama_error * error);

    // ---- sampling in the graph: [EXPERIMENTAL] in llama.cpp ----

    // A sampler for one attachment. Its shape is part of the graph: the largest logit (`greedy`), or a draw by temperature from the
    // tokens that min_p leaves (`min_p`) of the top_k (`candidates` is the largest top_k there may be, 1..=1024; 0: of all).
    int32_t (*sampler_new)(bool greedy, bool min_p, uint32_t candidates, struct infer_llama_sampler ** out, infer_llama_error * error);
    // NULL is a no-op. Not while it is attached; a context that is freed lets go of its samplers.
    void    (*sampler_free)(struct infer_llama_sampler * sampler);
    // Tokens of `seq` are drawn so from the next pass on; NULL: its logits come out again. The context must have been made with
    // n_outputs_max_per_seq 1. Every call has the next pass measure its graphs anew. UNSUPPORTED where the device lacks an operation.
    int32_t (*sampler_attach)(struct llama_context * context, int32_t seq, struct infer_llama_sampler * sampler, infer_llama_error * error);
    // What the next draw uses: a number in [0, 1), 1 / temperature, ln(min_p), and top_k (1..=candidates; ignored where that is 0). Tokens
    // stand in the order of their ids, each as wide as its weight. Not during a pass of a context it is attached to.
    int32_t (*sampler_inputs)(struct infer_llama_sampler * sampler, float uniform, float scale, float least, uint32_t top_k,
                              infer_llama_error * error);
    // The token that was drawn at this position of the last batch, and the logarithm of its probability at temperature 1 among all
    // tokens: not a number, or infinite, where the logits were such. INFER_LLAMA_FAILED where none was drawn.
    int32_t (*sampled)(struct llama_context * context, int32_t index, int32_t * token, float * logprob, infer_llama_error * error);
} infer_llama_table;

#if defined(_WIN32)
#    define INFER_LLAMA_EXPORT __declspec(dllexport)
#else
#    define INFER_LLAMA_EXPORT __attribute__((visibility("default")))
#endif

// The table, which lives as long as the process (or the library), or NULL when this door does not speak `version`. Version 0 asks for
// whatever table there is: only its prefix may be read then, so that a refusal can say what was found.
INFER_LLAMA_EXPORT const struct infer_llama_table * infer_llama_api(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif // INFER_LLAMA_DOOR_H
