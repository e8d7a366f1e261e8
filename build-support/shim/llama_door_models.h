// Entries: models, their vocabularies and their adapters.
#ifndef INFER_LLAMA_DOOR_MODELS_H
#define INFER_LLAMA_DOOR_MODELS_H

#include "llama_door_wall.h"

// For llama_model: C++, not installed, so that a llama.cpp of the system lacks it.
#if __has_include("llama-model.h")
#    include "llama-model.h"
#    define INFER_LLAMA_HAS_MODEL 1
#else
#    define INFER_LLAMA_HAS_MODEL 0
#endif

#include <cstdio>
#include <memory>

#if defined(_WIN32)
#    include <io.h>
#else
#    include <unistd.h>
#endif

namespace {

// ---- open files ----

struct CloseFile {
    void operator()(FILE * file) const { std::fclose(file); }
};

using File = std::unique_ptr<FILE, CloseFile>;

File file_of(int32_t fd) {
#if defined(_WIN32)
    const int copy = _dup(fd);
#else
    const int copy = dup(fd);
#endif
    if (copy < 0) {
        system_error("cannot duplicate the file descriptor");
    }
#if defined(_WIN32)
    File file(_fdopen(copy, "rb"));
#else
    File file(fdopen(copy, "rb"));
#endif
    if (!file) {
        const int saved = errno;
#if defined(_WIN32)
        _close(copy);
#else
        close(copy);
#endif
        errno = saved;
        system_error("cannot open a stream on the file descriptor");
    }
    if (std::fseek(file.get(), 0, SEEK_SET) != 0) {
        system_error("cannot seek to the start of the file");
    }
    return file;
}

void give(llama_model ** out, llama_model * model) {
    if (model == nullptr) {
        failed("the model could not be loaded");
    }
    *out = model;
}

// Tells its user how far a load is, and ends it when the process ends. Lives as long as the load.
class Watched {
public:
    explicit Watched(const llama_model_params & params)
        : callback_(params.progress_callback), user_data_(params.progress_callback_user_data), params_(params) {
        params_.progress_callback           = progress;
        params_.progress_callback_user_data = this;
    }

    Watched(const Watched &)             = delete;
    Watched & operator=(const Watched &) = delete;

    const llama_model_params & params() const { return params_; }

private:
    static bool progress(float done, void * data) {
        const Watched & load = *static_cast<const Watched *>(data);
        return !process_ends() && (load.callback_ == nullptr || load.callback_(done, load.user_data_));
    }

    llama_progress_callback callback_;
    void *                  user_data_;
    llama_model_params      params_;
};

void check_token(const llama_vocab & vocab, int32_t token) {
    if (llama_vocab_type(&vocab) == LLAMA_VOCAB_TYPE_NONE) {
        throw Refused { INFER_LLAMA_UNSUPPORTED, "the model has no vocabulary" };
    }
    const int32_t n = llama_vocab_n_tokens(&vocab);
    if (token < 0 || token >= n) {
        refuse("token " + std::to_string(token) + " is outside the vocabulary of " + std::to_string(n));
    }
}

} // namespace

extern "C" {

// ---- models ----

static void door_model_default_params(struct llama_model_params * out) {
    if (out != nullptr) {
        *out = llama_model_default_params();
    }
}

static int32_t door_model_load_from_file(const char * path, const struct llama_model_params * params, struct llama_model ** out,
                                         infer_llama_error * error) {
    return wall(error, [=] {
        needed(out, "out");
        const Watched load(needed(params, "params"));
        give(out, llama_model_load_from_file(&needed(path, "path"), load.params()));
    });
}

static int32_t door_model_load_from_splits(const char * const * paths, size_t n_paths, const struct llama_model_params * params,
                                           struct llama_model ** out, infer_llama_error * error) {
    return wall(error, [=] {
        needed(out, "out");
        if (n_paths == 0) {
            refuse("no paths");
        }
        for (size_t i = 0; i < n_paths; ++i) {
            needed((&needed(paths, "paths"))[i], "a path");
        }
        const Watched load(needed(params, "params"));
        // llama.cpp only reads the array; its type lacks the const.
        give(out, llama_model_load_from_splits(const_cast<const char **>(paths), n_paths, load.params()));
    });
}

static int32_t door_model_load_from_fd(int32_t fd, const struct llama_model_params * params, struct llama_model ** out,
                                       infer_llama_error * error) {
    return wall(error, [=] {
        needed(out, "out");
        // A mapping outlives the stream, so the stream can be closed whatever becomes of the load.
        const File file = file_of(fd);
        const Watched load(needed(params, "params"));
        give(out, llama_model_load_from_file_ptr(file.get(), load.params()));
    });
}

static void door_model_free(struct llama_model * model) {
    wall(nullptr, [=] { llama_model_free(model); });
}

static int32_t door_model_info(const struct llama_model * model, infer_llama_model_info * out, infer_llama_error * error) {
    return wall(error, [=] {
        needed(model, "model");
        infer_llama_model_info & info = needed(out, "out");
        info.n_ctx_train           = llama_model_n_ctx_train(model);
        info.n_embd                = llama_model_n_embd(model);
        info.n_embd_inp            = llama_model_n_embd_inp(model);
        info.n_embd_out            = llama_model_n_embd_out(model);
        info.n_layer               = llama_model_n_layer(model);
        // Asking for the heads of a layer that is not there aborts.
        info.n_head                = info.n_layer > 0 ? llama_model_n_head(model) : 0;
        info.n_head_kv             = info.n_layer > 0 ? llama_model_n_head_kv(model) : 0;
        info.n_swa                 = llama_model_n_swa(model);
        info.rope_type             = static_cast<int32_t>(llama_model_rope_type(model));
        info.rope_freq_scale_train = llama_model_rope_freq_scale_train(model);
        info.n_cls_out             = llama_model_n_cls_out(model);
        info.ftype                 = static_cast<int32_t>(llama_model_ftype(model));
        info.n_params              = llama_model_n_params(model);
        info.size                  = llama_model_size(model);
        info.decoder_start_token   = llama_model_decoder_start_token(model);
        info.has_encoder           = llama_model_has_encoder(model);
        info.has_decoder           = llama_model_has_decoder(model);
        info.is_recurrent          = llama_model_is_recurrent(model);
        info.is_hybrid             = llama_model_is_hybrid(model);
        info.is_diffusion          = llama_model_is_diffusion(model);
    });
}

static int32_t door_model_desc(const struct llama_model * model, char * buf, size_t cap, size_t * len, infer_llama_error * error) {
    return wall(error, [=] {
        needed(model, "model");
        fill_string(buf, cap, len, "no description", [=](char * b, size_t n) { return llama_model_desc(model, b, n); });
    });
}

static int32_t door_model_meta_count(const struct llama_model * model) {
    return model == nullptr ? 0 : llama_model_meta_count(model);
}

static int32_t door_model_meta_key(const struct llama_model * model, int32_t index, char * buf, size_t cap, size_t * len,
                                   infer_llama_error * error) {
    return wall(error, [=] {
        needed(model, "model");
        fill_string(buf, cap, len, "no metadata of that index",
                    [=](char * b, size_t n) { return llama_model_meta_key_by_index(model, index, b, n); });
    });
}

static int32_t door_model_meta_val(const struct llama_model * model, int32_t index, char * buf, size_t cap, size_t * len,
                                   infer_llama_error * error) {
    return wall(error, [=] {
        needed(model, "model");
        fill_string(buf, cap, len, "no metadata of that index",
                    [=](char * b, size_t n) { return llama_model_meta_val_str_by_index(model, index, b, n); });
    });
}

static int32_t door_model_chat_template(const struct llama_model * model, const char * name, const char ** out,
                                        infer_llama_error * error) {
    return wall(error, [=] { needed(out, "out") = llama_model_chat_template(&needed(model, "model"), name); });
}

static int32_t door_model_cls_label(const struct llama_model * model, uint32_t index, const char ** out, infer_llama_error * error) {
    return wall(error, [=] { needed(out, "out") = llama_model_cls_label(&needed(model, "model"), index); });
}

static const char * door_ftype_name(int32_t ftype) {
    return llama_ftype_name(static_cast<enum llama_ftype>(ftype));
}

static int32_t door_model_layer_devices(const struct llama_model * model, ggml_backend_dev_t * out, size_t cap, size_t * n,
                                        infer_llama_error * error) {
    return wall(error, [=] {
        const llama_model & loaded = needed(model, "model");
        size_t & count = needed(n, "n");
#if INFER_LLAMA_HAS_MODEL
        const size_t layers = loaded.hparams.vocab_only ? 0 : loaded.hparams.n_layer_all + 1;
        for (size_t i = 0; out != nullptr && i < layers && i < cap; ++i) {
            out[i] = i + 1 < layers ? loaded.dev_layer(static_cast<int>(i)) : loaded.dev_output();
        }
        count = layers;
#else
        (void) loaded;
        (void) out;
        (void) cap;
        (void) count;
        throw Refused { INFER_LLAMA_UNSUPPORTED, "this llama.cpp does not tell where its layers are" };
#endif
    });
}

// ---- vocabulary ----

static const struct llama_vocab * door_model_vocab(const struct llama_model * model) {
    return model == nullptr ? nullptr : llama_model_get_vocab(model);
}

static int32_t door_vocab_info(const struct llama_vocab * vocab, infer_llama_vocab_info * out, infer_llama_error * error) {
    return wall(error, [=] {
        needed(vocab, "vocab");
        infer_llama_vocab_info & info = needed(out, "out");
        info.type     = static_cast<int32_t>(llama_vocab_type(vocab));
        info.n_tokens = llama_vocab_n_tokens(vocab);
        info.bos      = llama_vocab_bos(vocab);
        info.eos      = llama_vocab_eos(vocab);
        info.eot      = llama_vocab_eot(vocab);
        info.sep      = llama_vocab_sep(vocab);
        info.nl       = llama_vocab_nl(vocab);
        info.pad      = llama_vocab_pad(vocab);
        info.mask     = llama_vocab_mask(vocab);
        info.fim_pre  = llama_vocab_fim_pre(vocab);
        info.fim_suf  = llama_vocab_fim_suf(vocab);
        info.fim_mid  = llama_vocab_fim_mid(vocab);
        info.fim_pad  = llama_vocab_fim_pad(vocab);
        info.fim_rep  = llama_vocab_fim_rep(vocab);
        info.fim_sep  = llama_vocab_fim_sep(vocab);
        info.add_bos  = llama_vocab_get_add_bos(vocab);
        info.add_eos  = llama_vocab_get_add_eos(vocab);
        info.add_sep  = llama_vocab_get_add_sep(vocab);
    });
}

static int32_t door_vocab_token(const struct llama_vocab * vocab, int32_t token, infer_llama_token_info * out,
                                infer_llama_error * error) {
    return wall(error, [=] {
        check_token(needed(vocab, "vocab"), token);
        infer_llama_token_info & info = needed(out, "out");
        info.text       = llama_vocab_get_text(vocab, token);
        info.score      = llama_vocab_get_score(vocab, token);
        info.attr       = static_cast<uint32_t>(llama_vocab_get_attr(vocab, token));
        info.is_eog     = llama_vocab_is_eog(vocab, token);
        info.is_control = llama_vocab_is_control(vocab, token);
    });
}

static int32_t door_tokenize(const struct llama_vocab * vocab, const char * text, size_t text_len, int32_t * tokens, size_t cap,
                             bool add_special, bool parse_special, size_t * n, infer_llama_error * error) {
    return wall(error, [=] {
        needed(vocab, "vocab");
        size_t & out = needed(n, "n");
        if (text_len != 0) {
            needed(text, "text");
        }
        if (text_len > INT32_MAX) {
            refuse("the text has more than 2^31 bytes");
        }
        if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) {
            throw Refused { INFER_LLAMA_UNSUPPORTED, "the model has no vocabulary" };
        }
        fill_counted(llama_tokenize(vocab, text_len == 0 ? "" : text, static_cast<int32_t>(text_len), tokens,
                                    tokens == nullptr ? 0 : clamped(cap), add_special, parse_special),
                     &out, "tokens");
    });
}

static int32_t door_token_to_piece(const struct llama_vocab * vocab, int32_t token, bool special, char * buf, size_t cap, size_t * len,
                                   infer_llama_error * error) {
    return wall(error, [=] {
        check_token(needed(vocab, "vocab"), token);
        size_t & out = needed(len, "len");
        fill_counted(llama_token_to_piece(vocab, token, buf, buf == nullptr ? 0 : clamped(cap), 0, special), &out, "piece");
    });
}

static int32_t door_detokenize(const struct llama_vocab * vocab, const int32_t * tokens, size_t n_tokens, bool remove_special,
                               bool unparse_special, char * buf, size_t cap, size_t * len, infer_llama_error * error) {
    return wall(error, [=] {
        needed(vocab, "vocab");
        size_t & out = needed(len, "len");
        // llama.cpp adds up the length in 32 bits, and writes where a sum that wrapped around points. No piece is longer than its text or
        // a few bytes.
        int64_t longest = 0;
        for (size_t i = 0; i < n_tokens; ++i) {
            const int32_t token = (&needed(tokens, "tokens"))[i];
            check_token(*vocab, token);
            longest += 16 + static_cast<int64_t>(std::strlen(llama_vocab_get_text(vocab, token)));
        }
        if (longest > INT32_MAX) {
            refuse("the text may have more than 2^31 bytes");
        }
        // It writes behind what it counts when it cleans spaces, so it must not be handed NULL even for nothing.
        char nothing = '\0';
        fill_counted(llama_detokenize(vocab, tokens, static_cast<int32_t>(n_tokens), buf == nullptr ? &nothing : buf,
                                      buf == nullptr ? 0 : clamped(cap), remove_special, unparse_special),
                     &out, "text");
    });
}

// ---- LoRA adapters ----

static int32_t door_adapter_load(struct llama_model * model, const char * path, struct llama_adapter_lora ** out,
                                 infer_llama_error * error) {
    return wall(error, [=] {
        needed(out, "out");
        llama_adapter_lora * adapter = llama_adapter_lora_init(&needed(model, "model"), &needed(path, "path"));
        if (adapter == nullptr) {
            failed("the adapter could not be loaded");
        }
        *out = adapter;
    });
}

static int32_t door_adapter_load_from_fd(struct llama_model * model, int32_t fd, struct llama_adapter_lora ** out,
                                         infer_llama_error * error) {
    return wall(error, [=] {
        needed(model, "model");
        needed(out, "out");
        // The weights are copied, so the stream can be closed whatever becomes of the load.
        const File           file    = file_of(fd);
        llama_adapter_lora * adapter = llama_adapter_lora_init_from_file_ptr(model, file.get());
        if (adapter == nullptr) {
            failed("the adapter could not be loaded");
        }
        *out = adapter;
    });
}

static void door_adapter_free(struct llama_adapter_lora * adapter) {
    wall(nullptr, [=] { llama_adapter_lora_free(adapter); });
}

static int32_t door_adapter_meta_count(const struct llama_adapter_lora * adapter) {
    return adapter == nullptr ? 0 : llama_adapter_meta_count(adapter);
}

static int32_t door_adapter_meta_key(const struct llama_adapter_lora * adapter, int32_t index, char * buf, size_t cap, size_t * len,
                                     infer_llama_error * error) {
    return wall(error, [=] {
        needed(adapter, "adapter");
        fill_string(buf, cap, len, "no metadata of that index",
                    [=](char * b, size_t n) { return llama_adapter_meta_key_by_index(adapter, index, b, n); });
    });
}

static int32_t door_adapter_meta_val(const struct llama_adapter_lora * adapter, int32_t index, char * buf, size_t cap, size_t * len,
                                     infer_llama_error * error) {
    return wall(error, [=] {
        needed(adapter, "adapter");
        fill_string(buf, cap, len, "no metadata of that index",
                    [=](char * b, size_t n) { return llama_adapter_meta_val_str_by_index(adapter, index, b, n); });
    });
}

static int32_t door_adapters_set(struct llama_context * context, struct llama_adapter_lora * const * adapters, const float * scales,
                                 size_t n, infer_llama_error * error) {
    return wall(error, [=] {
        needed(context, "context");
        for (size_t i = 0; i < n; ++i) {
            needed((&needed(adapters, "adapters"))[i], "an adapter");
        }
        if (n != 0) {
            needed(scales, "scales");
        }
        // llama.cpp only reads the arrays; their types lack the const.
        const int32_t status = llama_set_adapters_lora(context, const_cast<llama_adapter_lora **>(adapters), n,
                                                       const_cast<float *>(scales));
        if (status != 0) {
            failed("the adapters could not be set");
        }
    });
}

} // extern "C"

#endif // INFER_LLAMA_DOOR_MODELS_H
