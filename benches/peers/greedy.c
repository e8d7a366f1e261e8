// Greedy decoding in plain C, over the very object that the Rust crates link: what their tokens are compared with.
//
//     greedy MODEL THREADS CONTEXT COUNT < prompts
//
// The prompts on stdin each end with a NUL. For each one a line is printed: COUNT tokens, or fewer when the model ends the text, each
// as `id:gap`, where the gap is how far its logit stands above the next one's. A gap near 0 is a near-tie, which other kernels may
// decide otherwise.

#include "llama_door.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const infer_llama_table * api;
static infer_llama_error         error;

static void check(int32_t status, const char * what) {
    if (status != INFER_LLAMA_OK) {
        fprintf(stderr, "greedy: %s: status %d: %s\n", what, status, error.message);
        exit(1);
    }
}

static void * reserve(void * old, size_t bytes) {
    void * memory = realloc(old, bytes);
    if (memory == NULL) {
        fprintf(stderr, "greedy: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

// The next byte string up to a NUL, in `*buf`. Returns its length, or -1 at the end of the input.
static ptrdiff_t next_prompt(char ** buf, size_t * cap) {
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

// One pass that appends `n` tokens to sequence 0 and asks for the logits after the last one.
static void decode(struct llama_context * context, struct llama_batch * batch, const llama_token * tokens, size_t n, llama_pos at) {
    for (size_t i = 0; i < n; i++) {
        batch->token[i]  = tokens[i];
        batch->pos[i]    = at + (llama_pos) i;
        batch->logits[i] = i + 1 == n;
    }
    batch->n_tokens = (int32_t) n;
    int32_t result  = 0;
    check(api->decode(context, batch, &result, &error), "decode");
    if (result != 0) {
        fprintf(stderr, "greedy: decode of %zu tokens at %d: result %d\n", n, at, result);
        exit(1);
    }
}

// The largest of `logits`, the first one of equals, and how far it stands above the next.
static llama_token argmax(const float * logits, size_t len, float * gap) {
    size_t best   = 0;
    float  second = -1e30f;
    for (size_t i = 1; i < len; i++) {
        if (logits[i] > logits[best]) {
            second = logits[best];
            best   = i;
        } else if (logits[i] > second) {
            second = logits[i];
        }
    }
    *gap = logits[best] - second;
    return (llama_token) best;
}

static struct llama_batch make_batch(size_t cap) {
    struct llama_batch batch;
    memset(&batch, 0, sizeof batch);
    batch.token    = reserve(NULL, cap * sizeof *batch.token);
    batch.pos      = reserve(NULL, cap * sizeof *batch.pos);
    batch.n_seq_id = reserve(NULL, cap * sizeof *batch.n_seq_id);
    batch.seq_id   = reserve(NULL, cap * sizeof *batch.seq_id);
    batch.logits   = reserve(NULL, cap * sizeof *batch.logits);
    static llama_seq_id sequence = 0;
    for (size_t i = 0; i < cap; i++) {
        batch.n_seq_id[i] = 1;
        batch.seq_id[i]   = &sequence;
    }
    return batch;
}

static void quiet(enum ggml_log_level level, const char * text, void * data) {
    (void) data;
    if (level == GGML_LOG_LEVEL_ERROR) {
        fputs(text, stderr);
    }
}

int main(int argc, char ** argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: greedy MODEL THREADS CONTEXT COUNT < prompts\n");
        return 2;
    }
    const int32_t  threads = atoi(argv[2]);
    const uint32_t n_ctx   = (uint32_t) atoi(argv[3]);
    const int      count   = atoi(argv[4]);

    api = infer_llama_api(INFER_LLAMA_DOOR_VERSION);
    if (api == NULL || api->size != sizeof *api) {
        fprintf(stderr, "greedy: the door is not of version %d\n", INFER_LLAMA_DOOR_VERSION);
        return 1;
    }
    api->log_set(quiet, NULL);
    check(api->backend_init(&error), "backend_init");

    struct llama_model_params model_params;
    api->model_default_params(&model_params);
    struct llama_model * model = NULL;
    check(api->model_load_from_file(argv[1], &model_params, &model, &error), argv[1]);
    const struct llama_vocab * vocab = api->model_vocab(model);

    struct llama_context_params params;
    api->context_default_params(&params);
    params.n_ctx           = n_ctx;
    params.n_threads       = threads;
    params.n_threads_batch = threads;
    struct llama_context * context = NULL;
    check(api->context_new(model, &params, &context, &error), "context_new");

    struct llama_batch batch = make_batch(n_ctx);
    llama_token *      tokens = NULL;
    char *             prompt = NULL;
    size_t             tokens_cap = 0, prompt_cap = 0;
    ptrdiff_t          len;
    while ((len = next_prompt(&prompt, &prompt_cap)) >= 0) {
        size_t n = tokenize(vocab, prompt, (size_t) len, &tokens, &tokens_cap);
        check(api->memory_clear(context, false, &error), "memory_clear");
        if (n == 0 || n + (size_t) count > n_ctx) {
            fprintf(stderr, "greedy: a prompt of %zu tokens does not fit a context of %u\n", n, n_ctx);
            return 1;
        }
        decode(context, &batch, tokens, n, 0);
        for (int i = 0; i < count; i++) {
            const float * logits = NULL;
            size_t        width  = 0;
            float         gap    = 0;
            check(api->logits(context, batch.n_tokens - 1, &logits, &width, &error), "logits");
            llama_token token = argmax(logits, width, &gap);
            printf("%s%d:%.4f", i ? " " : "", token, gap);
            infer_llama_token_info info;
            check(api->vocab_token(vocab, token, &info, &error), "vocab_token");
            if (info.is_eog) {
                break;
            }
            if (i + 1 < count) {
                decode(context, &batch, &token, 1, (llama_pos) n + i);
            }
        }
        printf("\n");
        fflush(stdout);
    }

    api->context_free(context);
    api->model_free(model);
    return 0;
}
