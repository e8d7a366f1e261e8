// llama.cpp's own samplers on rows of logits: what the host sampler's distributions are compared with.
//
//     samplers MODEL < commands
//
// MODEL's vocabulary is what DRY's breakers are looked for in. A command is a line:
//
//     row N                            N logits follow the line, as they lie in memory; they stay until the next row
//     history N TOKEN…                 what the samplers have accepted; it stays until the next history
//     breaker N                        N bytes follow the line: one more text that ends a repetition
//     bias TOKEN X                     one more sampler in the chain, and so are all of these:
//     penalties LAST_N REPEAT FREQUENCY PRESENCE
//     dry MULTIPLIER BASE ALLOWED_LENGTH LAST_N        with the breakers so far
//     top_n_sigma N | top_k K | typical P | top_p P | min_p P | xtc PROBABILITY THRESHOLD | temperature T RANGE EXPONENT
//     apply
//
// The last one runs the chain and begins a new one. It answers with a line that has the count of tokens that are left, then their
// ids (32 bits each) and their probabilities (double), as they lie in memory.

#include "llama.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BREAKERS = 64 };

static float *                row;
static size_t                 row_len;
static llama_token *          history;
static size_t                 history_len;
static char *                 breakers[MAX_BREAKERS];
static size_t                 breakers_len;
static struct llama_sampler * chain;

static void fail(const char * what) {
    fprintf(stderr, "samplers: %s\n", what);
    exit(1);
}

static void * reserve(void * old, size_t bytes) {
    void * memory = realloc(old, bytes);
    if (memory == NULL) {
        fail("no memory");
    }
    return memory;
}

static float number(void) {
    float value;
    if (scanf("%f", &value) != 1) {
        fail("a number is missing");
    }
    return value;
}

static int32_t whole(void) {
    int32_t value;
    if (scanf("%d", &value) != 1) {
        fail("a whole number is missing");
    }
    return value;
}

// The bytes after the line that was read up to its end.
static void bytes(void * to, size_t len) {
    if (getchar() != '\n' || fread(to, 1, len, stdin) != len) {
        fail("the input ends early");
    }
}

static struct llama_sampler * bias(const struct llama_vocab * vocab) {
    llama_logit_bias entry;
    entry.token = whole();
    entry.bias  = number();
    return llama_sampler_init_logit_bias(llama_vocab_n_tokens(vocab), 1, &entry);
}

static struct llama_sampler * penalties(const struct llama_vocab * vocab) {
    const int32_t last_n    = whole();
    const float   repeat    = number();
    const float   frequency = number();
    const float   presence  = number();
    return llama_sampler_init_penalties(llama_vocab_n_tokens(vocab), last_n, repeat, frequency, presence);
}

static struct llama_sampler * dry(const struct llama_vocab * vocab) {
    const float   multiplier = number();
    const float   base       = number();
    const int32_t allowed    = whole();
    const int32_t last_n     = whole();
    return llama_sampler_init_dry(vocab, multiplier, base, allowed, last_n, (const char **) breakers, breakers_len);
}

static struct llama_sampler * xtc(void) {
    const float probability = number();
    const float threshold   = number();
    return llama_sampler_init_xtc(probability, threshold, 0, 0);
}

static struct llama_sampler * temperature(void) {
    const float t        = number();
    const float range    = number();
    const float exponent = number();
    return llama_sampler_init_temp_ext(t, range, exponent);
}

// The sampler of that name, its arguments read; NULL if there is none.
static struct llama_sampler * sampler(const char * name, const struct llama_vocab * vocab) {
    if (strcmp(name, "bias") == 0) {
        return bias(vocab);
    } else if (strcmp(name, "penalties") == 0) {
        return penalties(vocab);
    } else if (strcmp(name, "dry") == 0) {
        return dry(vocab);
    } else if (strcmp(name, "top_n_sigma") == 0) {
        return llama_sampler_init_top_n_sigma(number());
    } else if (strcmp(name, "top_k") == 0) {
        return llama_sampler_init_top_k(whole());
    } else if (strcmp(name, "typical") == 0) {
        return llama_sampler_init_typical(number(), 0);
    } else if (strcmp(name, "top_p") == 0) {
        return llama_sampler_init_top_p(number(), 0);
    } else if (strcmp(name, "min_p") == 0) {
        return llama_sampler_init_min_p(number(), 0);
    } else if (strcmp(name, "xtc") == 0) {
        return xtc();
    } else if (strcmp(name, "temperature") == 0) {
        return temperature();
    }
    return NULL;
}

// Prints what a chain has left, with the probabilities that its logits mean, added up in double.
static void answer(const llama_token_data_array * left) {
    int32_t * ids   = reserve(NULL, left->size * sizeof *ids);
    double *  p     = reserve(NULL, left->size * sizeof *p);
    double    sum   = 0;
    float     max   = -INFINITY;
    size_t    count = 0;
    for (size_t i = 0; i < left->size; i++) {
        max = fmaxf(max, left->data[i].logit);
    }
    for (size_t i = 0; i < left->size; i++) {
        // Some samplers mark a token as left out, and leave it where it is.
        if (left->data[i].logit > -INFINITY) {
            ids[count] = left->data[i].id;
            p[count]   = exp((double) left->data[i].logit - max);
            sum += p[count++];
        }
    }
    for (size_t i = 0; i < count; i++) {
        p[i] /= sum;
    }
    printf("%zu\n", count);
    fwrite(ids, sizeof *ids, count, stdout);
    fwrite(p, sizeof *p, count, stdout);
    fflush(stdout);
    free(ids);
    free(p);
}

static void begin(void) {
    for (size_t i = 0; i < breakers_len; i++) {
        free(breakers[i]);
    }
    breakers_len = 0;
    chain        = llama_sampler_chain_init(llama_sampler_chain_default_params());
}

static void apply(void) {
    llama_token_data * data = reserve(NULL, row_len * sizeof *data);
    for (size_t i = 0; i < row_len; i++) {
        data[i] = (llama_token_data) { (llama_token) i, row[i], 0 };
    }
    for (size_t i = 0; i < history_len; i++) {
        llama_sampler_accept(chain, history[i]);
    }
    llama_token_data_array left = { data, row_len, -1, false };
    llama_sampler_apply(chain, &left);
    answer(&left);
    free(data);
    llama_sampler_free(chain);
    begin();
}

static void command(const char * name, const struct llama_vocab * vocab) {
    struct llama_sampler * next = sampler(name, vocab);
    if (next != NULL) {
        llama_sampler_chain_add(chain, next);
    } else if (strcmp(name, "row") == 0) {
        row_len = (size_t) whole();
        row     = reserve(row, row_len * sizeof *row);
        bytes(row, row_len * sizeof *row);
    } else if (strcmp(name, "history") == 0) {
        history_len = (size_t) whole();
        history     = reserve(history, (history_len + 1) * sizeof *history);
        for (size_t i = 0; i < history_len; i++) {
            history[i] = whole();
        }
    } else if (strcmp(name, "breaker") == 0 && breakers_len < MAX_BREAKERS) {
        const size_t len     = (size_t) whole();
        char *       breaker = reserve(NULL, len + 1);
        bytes(breaker, len);
        breaker[len]             = '\0';
        breakers[breakers_len++] = breaker;
    } else if (strcmp(name, "apply") == 0) {
        apply();
    } else {
        fail("an unknown command");
    }
}

static void quiet(enum ggml_log_level level, const char * text, void * data) {
    (void) data;
    if (level == GGML_LOG_LEVEL_ERROR) {
        fputs(text, stderr);
    }
}

int main(int argc, char ** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: samplers MODEL < commands\n");
        return 2;
    }
    llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model_params params = llama_model_default_params();
    params.vocab_only                = true;
    struct llama_model * model       = llama_model_load_from_file(argv[1], params);
    if (model == NULL) {
        fail("the model cannot be loaded");
    }
    begin();
    char name[32];
    while (scanf("%31s", name) == 1) {
        command(name, llama_model_get_vocab(model));
    }
    llama_sampler_free(chain);
    llama_model_free(model);
    free(row);
    free(history);
    return 0;
}
