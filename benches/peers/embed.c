// Embeddings in plain C, over the very object that the Rust crates link: the work of llama.cpp's program llama-embedding, step by
// step. What vectors are compared with.
//
//     embed MODEL THREADS TOKENS POOLING < texts
//
// The texts on stdin each end with a NUL. They are put into passes of up to TOKENS tokens in the order they come; POOLING is llama.cpp's
// number. For each text a line is printed: the numbers of its pooled vector, divided by its Euclidean length.

#include "llama_door.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const infer_llama_table * api;
static infer_llama_error         error;

static void check(int32_t status, const char * what) {
    if (status != INFER_LLAMA_OK) {
        fprintf(stderr, "embed: %s: status %d: %s\n", what, status, error.message);
        exit(1);
    }
}

static void * reserve(void * old, size_t bytes) {
    void * memory = realloc(old, bytes);
    if (memory == NULL) {
        fprintf(stderr, "embed: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

// The next byte string up to a NUL, in `*buf`. Returns its length, or -1 at the end of the input.
static ptrdiff_t next_text(char ** buf, size_t * cap) {
    size_t len = 0;
    int    c;
    while ((c = getchar()) != EOF && c != '\0') {
        if (len == *cap) {
            *cap = *cap ? 2 * *cap : 4096;
            *buf = reserve(*buf, *cap);
        }
        (*buf)[len++] = (char) c;
    }
    return c == EOF && len == 0 ? -1 : (ptrdiff_t) len;
}

// The tokens of `text`, in `*tokens`. Returns how many.
static size_t tokenize(const struct llama_vocab * vocab, const char * text, size_t len, llama_token ** tokens, size_t * cap) {
    size_t  n      = 0;
    int32_t status = api->tokenize(vocab, text, len, *tokens, *cap, true, false, &n, &error);
    if (status == INFER_LLAMA_TOO_SMALL) {
        *cap    = n;
        *tokens = reserve(*tokens, n * sizeof **tokens);
        status  = api->tokenize(vocab, text, len, *tokens, *cap, true, false, &n, &error);
    }
    check(status, "tokenize");
    return n;
}

// What a pass is made of: arrays of `cap` tokens, the sequence id of each beside it.
struct pass {
    struct llama_batch batch;
    llama_seq_id *     ids;
    int32_t            texts;
};

static struct pass make_pass(size_t cap) {
    struct pass pass;
    memset(&pass, 0, sizeof pass);
    pass.batch.token    = reserve(NULL, cap * sizeof *pass.batch.token);
    pass.batch.pos      = reserve(NULL, cap * sizeof *pass.batch.pos);
    pass.batch.n_seq_id = reserve(NULL, cap * sizeof *pass.batch.n_seq_id);
    pass.batch.seq_id   = reserve(NULL, cap * sizeof *pass.batch.seq_id);
    pass.batch.logits   = reserve(NULL, cap * sizeof *pass.batch.logits);
    pass.ids            = reserve(NULL, cap * sizeof *pass.ids);
    for (size_t i = 0; i < cap; i++) {
        pass.batch.n_seq_id[i] = 1;
        pass.batch.seq_id[i]   = &pass.ids[i];
    }
    return pass;
}

static void add(struct pass * pass, const llama_token * tokens, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const int32_t at      = pass->batch.n_tokens++;
        pass->batch.token[at]  = tokens[i];
        pass->batch.pos[at]    = (llama_pos) i;
        pass->batch.logits[at] = 1;
        pass->ids[at]          = pass->texts;
    }
    pass->texts++;
}

// Computes what was added and prints a line for each text.
static void run(struct llama_context * context, struct pass * pass) {
    if (pass->texts == 0) {
        return;
    }
    check(api->memory_clear(context, true, &error), "memory_clear");
    int32_t result = 0;
    check(api->decode(context, &pass->batch, &result, &error), "decode");
    if (result != 0) {
        fprintf(stderr, "embed: decode of %d tokens: result %d\n", pass->batch.n_tokens, result);
        exit(1);
    }
    for (int32_t text = 0; text < pass->texts; text++) {
        const float * row   = NULL;
        size_t        width = 0;
        double        sum   = 0;
        check(api->embeddings_seq(context, text, &row, &width, &error), "embeddings_seq");
        for (size_t i = 0; i < width; i++) {
            sum += (double) row[i] * row[i];
        }
        const double scale = sum > 0 ? 1 / sqrt(sum) : 0;
        for (size_t i = 0; i < width; i++) {
            printf("%s%.9g", i ? " " : "", row[i] * scale);
        }
        printf("\n");
    }
    pass->batch.n_tokens = 0;
    pass->texts          = 0;
}

static void quiet(enum ggml_log_level level, const char * text, void * data) {
    (void) data;
    if (level == GGML_LOG_LEVEL_ERROR) {
        fputs(text, stderr);
    }
}

int main(int argc, char ** argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: embed MODEL THREADS TOKENS POOLING < texts\n");
        return 2;
    }
    const int32_t  threads = atoi(argv[2]);
    const uint32_t most    = (uint32_t) atoi(argv[3]);

    api = infer_llama_api(INFER_LLAMA_DOOR_VERSION);
    if (api == NULL || api->size != sizeof *api) {
        fprintf(stderr, "embed: the door is not of version %d\n", INFER_LLAMA_DOOR_VERSION);
        return 1;
    }
    api->log_set(quiet, NULL);
    check(api->backend_init(&error), "backend_init");

    struct llama_model_params model_params;
    api->model_default_params(&model_params);
    struct llama_model * model = NULL;
    check(api->model_load_from_file(argv[1], &model_params, &model, &error), argv[1]);
    const struct llama_vocab * vocab = api->model_vocab(model);

    infer_llama_limits limits;
    check(api->limits(&limits, &error), "limits");
    struct llama_context_params params;
    api->context_default_params(&params);
    params.n_ctx           = most;
    params.n_batch         = most;
    params.n_ubatch        = most;
    params.n_seq_max       = limits.max_sequences < most ? limits.max_sequences : most;
    params.kv_unified      = true;
    params.embeddings      = true;
    params.pooling_type    = (enum llama_pooling_type) atoi(argv[4]);
    params.n_threads       = threads;
    params.n_threads_batch = threads;
    struct llama_context * context = NULL;
    check(api->context_new(model, &params, &context, &error), "context_new");

    struct pass   pass   = make_pass(most);
    llama_token * tokens = NULL;
    char *        text   = NULL;
    size_t        tokens_cap = 0, text_cap = 0;
    ptrdiff_t     len;
    while ((len = next_text(&text, &text_cap)) >= 0) {
        const size_t n = tokenize(vocab, text, (size_t) len, &tokens, &tokens_cap);
        if (n == 0 || n > most) {
            fprintf(stderr, "embed: a text of %zu tokens does not fit a pass of %u\n", n, most);
            return 1;
        }
        if ((uint32_t) pass.batch.n_tokens + n > most || (uint32_t) pass.texts == params.n_seq_max) {
            run(context, &pass);
        }
        add(&pass, tokens, n);
    }
    run(context, &pass);

    api->context_free(context);
    api->model_free(model);
    return 0;
}
