// Entries: sampling in the graph. A token is drawn where the logits are computed; it and the logarithm of its probability cross, the
// row of logits does not.
#ifndef INFER_LLAMA_DOOR_SAMPLER_H
#define INFER_LLAMA_DOOR_SAMPLER_H

#include "llama_door_contexts.h"

#include <cfloat>
#include <memory>
#include <vector>

// What a sampler is to do, what it is told before a pass, and its places in the graph that is built.
struct infer_llama_sampler {
    infer_llama_sampler(bool greedy, bool by_min_p, uint32_t candidates)
        : greedy(greedy), by_min_p(by_min_p), candidates(candidates) {}

    // What llama.cpp attaches: a chain with this in it. Freed by whoever frees this.
    llama_sampler * chain = nullptr;

    // The shape of its part of the graph.
    const bool     greedy;
    const bool     by_min_p;
    const uint32_t candidates; // that the top_k are looked for among; 0: all tokens are left

    // A sampler serves one attachment: llama.cpp asserts that it is told of its backend once.
    bool attached  = false;
    bool supported = false;

    float   uniform = 0.0f;
    float   scale   = 1.0f; // 1 / temperature
    float   least   = 0.0f; // ln(min_p): how far below the largest logit one may be
    int32_t rank    = 0;    // top_k - 1

    // Inputs of the graph as it stands: one for each row the sequence has in it.
    std::vector<ggml_tensor *> uniforms, scales, leasts, ranks;
};

namespace {

using Draw = infer_llama_sampler;

Draw & draw_of(const llama_sampler * sampler) {
    return *static_cast<Draw *>(sampler->ctx);
}

// The length of the rows that a list of n weights is laid out in: a divisor of n, near its root, so that a number is looked for among
// few rows and then in one.
int64_t row_length(int64_t n) {
    int64_t width = n;
    for (int64_t count = 1; count * count <= n; ++count) {
        if (n % count == 0) {
            width = n / count;
        }
    }
    return width;
}

// ---- the graph of one draw ----

class Graph {
public:
    Graph(ggml_context * ctx, Draw & draw, ggml_tensor * logits)
        : ctx_(ctx), draw_(draw), n_(ggml_nelements(logits)), width_(row_length(n_)), logits_(ggml_reshape_1d(ctx, logits, n_)),
          column_(column(logits_, n_)) {}

    void build(llama_sampler_data & data) {
        ggml_tensor * top  = ggml_argmax(ctx_, logits_);
        ggml_tensor * peak = at(column_, top);
        data.sampled       = draw_.greedy ? top : drawn(peak);
        // The probability of the largest logit is never too small for a float, and tells all the others.
        ggml_tensor * most  = ggml_log(ctx_, at(column(ggml_soft_max(ctx_, logits_), n_), top));
        ggml_tensor * logit = draw_.greedy ? peak : at(column_, data.sampled);
        data.probs          = ggml_add(ctx_, ggml_sub(ctx_, logit, peak), most);
        // Also where nothing is to come out: the plan of where everything lies serves later graphs of this shape, in which it does. llama.cpp
        // marks only what does in this one, and the place would be given to something else.
        ggml_set_output(data.sampled);
        ggml_set_output(data.probs);
        // Whatever is left here is copied to the host, as long as it is.
        data.logits     = nullptr;
        data.candidates = nullptr;
    }

private:
    // Tokens stand in the order of their ids, each as wide as its weight; the number lies in one of them. First the row it lies in is
    // looked for, then the place in that row: sums of few numbers, which are exact enough.
    ggml_tensor * drawn(ggml_tensor * peak) {
        const int64_t rows   = n_ / width_;
        ggml_tensor * weight = weights(peak);
        ggml_tensor * sums   = ggml_cumsum(ctx_, weight);
        ggml_tensor * ends   = ggml_cont(ctx_, ggml_view_2d(ctx_, sums, 1, rows, sums->nb[1], (width_ - 1) * sums->nb[0]));
        ggml_tensor * outer  = ggml_cumsum(ctx_, ggml_reshape_1d(ctx_, ends, rows));
        ggml_tensor * total  = ggml_view_1d(ctx_, outer, 1, (rows - 1) * outer->nb[0]);
        ggml_tensor * target = ggml_mul(ctx_, total, input(draw_.uniforms, GGML_TYPE_F32));

        ggml_tensor * row    = first_beyond(outer, target, rows);
        ggml_tensor * row_id = ggml_cast(ctx_, row, GGML_TYPE_I32);
        ggml_tensor * own    = at(ends, row_id);
        ggml_tensor * before = ggml_sub(ctx_, at(column(outer, rows), row_id), own);
        // As a share of the row, below 1: rounding must not lead behind its last weight, nor before its first.
        ggml_tensor * share  = ggml_clamp(ctx_, ggml_div(ctx_, ggml_sub(ctx_, target, before), own), 0.0f, 1.0f - 0x1p-20f);
        ggml_tensor * place  = first_beyond(ggml_get_rows(ctx_, sums, row_id), ggml_mul(ctx_, share, own), width_);
        return ggml_cast(ctx_, ggml_add(ctx_, ggml_scale(ctx_, row, static_cast<float>(width_)), place), GGML_TYPE_I32);
    }

    // What each token weighs, in rows; 0 for one that cannot be drawn.
    ggml_tensor * weights(ggml_tensor * peak) {
        const int64_t rows  = n_ / width_;
        ggml_tensor * below = ggml_sub(ctx_, ggml_reshape_2d(ctx_, logits_, width_, rows), spread(peak));
        // The largest is 0 whatever it is multiplied with, which a logit would not be.
        ggml_tensor * warm   = ggml_mul(ctx_, below, spread(input(draw_.scales, GGML_TYPE_F32)));
        ggml_tensor * flat   = ggml_soft_max(ctx_, ggml_reshape_1d(ctx_, warm, n_));
        ggml_tensor * weight = ggml_reshape_2d(ctx_, flat, width_, rows);
        if (draw_.candidates != 0) {
            weight = ggml_mul(ctx_, weight, reaching(below, ggml_sub(ctx_, last_of_top_k(), peak)));
        }
        if (draw_.by_min_p) {
            weight = ggml_mul(ctx_, weight, reaching(below, input(draw_.leasts, GGML_TYPE_F32)));
        }
        return weight;
    }

    // The smallest logit among the top_k. Sorted are copies that are numbers: what is none has no order, and std::sort may do anything
    // then. That a logit is none is seen all the same, by the probability.
    ggml_tensor * last_of_top_k() {
        const int64_t n     = draw_.candidates;
        ggml_tensor * real  = ggml_clamp(ctx_, logits_, -FLT_MAX, FLT_MAX);
        ggml_tensor * some  = at(column(real, n_), ggml_top_k(ctx_, real, static_cast<int>(n)));
        ggml_tensor * order = ggml_argsort(ctx_, ggml_reshape_1d(ctx_, some, n), GGML_SORT_ORDER_DESC);
        return at(at(some, order), input(draw_.ranks, GGML_TYPE_I32));
    }

    // 1 where a number is at least the threshold, 0 where it is not.
    ggml_tensor * reaching(ggml_tensor * numbers, ggml_tensor * threshold) {
        ggml_tensor * missing = ggml_scale(ctx_, ggml_sub(ctx_, numbers, spread(threshold)), -1.0f);
        return ggml_scale_bias(ctx_, ggml_step(ctx_, missing), -1.0f, 1.0f);
    }

    // Where in `sums`, which rise, the first is that is over `target`.
    ggml_tensor * first_beyond(ggml_tensor * sums, ggml_tensor * target, int64_t n) {
        ggml_tensor * beyond = ggml_sum(ctx_, ggml_step(ctx_, ggml_sub(ctx_, sums, target)));
        return ggml_scale_bias(ctx_, ggml_clamp(ctx_, beyond, 1.0f, static_cast<float>(n)), -1.0f, static_cast<float>(n));
    }

    ggml_tensor * at(ggml_tensor * rows, ggml_tensor * ids) { return ggml_get_rows(ctx_, rows, ids); }

    ggml_tensor * column(ggml_tensor * list, int64_t n) { return ggml_reshape_2d(ctx_, list, 1, n); }

    // One number along a whole row: rows are subtracted from rows fast, and single numbers are not.
    ggml_tensor * spread(ggml_tensor * number) { return ggml_repeat_4d(ctx_, number, width_, 1, 1, 1); }

    ggml_tensor * input(std::vector<ggml_tensor *> & all, ggml_type type) {
        all.push_back(ggml_new_tensor_1d(ctx_, type, 1));
        ggml_set_input(all.back());
        return all.back();
    }

    ggml_context * ctx_;
    Draw &         draw_;
    int64_t        n_;
    int64_t        width_;
    ggml_tensor *  logits_;
    ggml_tensor *  column_;
};

// ---- what llama.cpp calls ----

const char * draw_name(const llama_sampler *) {
    return "infer-draw";
}

// On rows in host memory, which nobody has it do.
void draw_apply(llama_sampler *, llama_token_data_array *) {}

void draw_backend_reset(llama_sampler * sampler) {
    Draw & draw = draw_of(sampler);
    for (auto * inputs : { &draw.uniforms, &draw.scales, &draw.leasts, &draw.ranks }) {
        inputs->clear();
    }
}

void draw_backend_apply(llama_sampler * sampler, ggml_context * ctx, ggml_cgraph *, llama_sampler_data * data) {
    Graph(ctx, draw_of(sampler), data->logits).build(*data);
}

// Whether the device that computes the logits has every operation a draw needs. A device that is none is the processor, which has.
bool has_operations(llama_sampler * sampler, ggml_backend_dev_t device) {
    if (device == nullptr) {
        return true;
    }
    constexpr size_t  nodes  = 256;
    constexpr int64_t tokens = 128 * 1024;
    const ggml_init_params params = { nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes, false), nullptr, true };
    const std::unique_ptr<ggml_context, decltype(&ggml_free)> ctx(ggml_init(params), ggml_free);
    if (ctx == nullptr) {
        throw std::bad_alloc();
    }
    ggml_cgraph *      graph = ggml_new_graph_custom(ctx.get(), nodes, false);
    llama_sampler_data data  = {};
    data.logits              = ggml_new_tensor_1d(ctx.get(), GGML_TYPE_F32, tokens);
    draw_backend_apply(sampler, ctx.get(), graph, &data);
    ggml_build_forward_expand(graph, data.sampled);
    ggml_build_forward_expand(graph, data.probs);
    draw_backend_reset(sampler);
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
        if (!ggml_backend_dev_supports_op(device, ggml_graph_node(graph, i))) {
            return false;
        }
    }
    return true;
}

bool draw_backend_init(llama_sampler * sampler, ggml_backend_buffer_type_t type, uint32_t) {
    Draw & draw    = draw_of(sampler);
    draw.supported = has_operations(sampler, ggml_backend_buft_get_device(type));
    return draw.supported;
}

template <typename T>
void set_inputs(const std::vector<ggml_tensor *> & inputs, T value) {
    for (ggml_tensor * input : inputs) {
        ggml_backend_tensor_set(input, &value, 0, sizeof(value));
    }
}

void draw_backend_set_input(llama_sampler * sampler) {
    const Draw & draw = draw_of(sampler);
    set_inputs(draw.uniforms, draw.uniform);
    set_inputs(draw.scales, draw.scale);
    set_inputs(draw.leasts, draw.least);
    set_inputs(draw.ranks, draw.rank);
}

llama_sampler_i * draw_functions() {
    static llama_sampler_i functions = [] {
        llama_sampler_i f   = {};
        f.name              = draw_name;
        f.apply             = draw_apply;
        f.backend_init      = draw_backend_init;
        f.backend_apply     = draw_backend_apply;
        f.backend_set_input = draw_backend_set_input;
        f.backend_reset     = draw_backend_reset;
        return f;
    }();
    return &functions;
}

} // namespace

extern "C" {

static int32_t door_sampler_new(bool greedy, bool min_p, uint32_t candidates, struct infer_llama_sampler ** out,
                                infer_llama_error * error) {
    return wall(error, [=] {
        needed(out, "out");
        if (greedy && (min_p || candidates != 0)) {
            refuse("a greedy sampler leaves one token, whatever else is asked for");
        }
        if (candidates > 1024) {
            refuse("candidates " + std::to_string(candidates) + " is over 1024");
        }
        llama_sampler_chain_params params = llama_sampler_chain_default_params();
        params.no_perf                    = true;
        auto draw = std::make_unique<Draw>(greedy, min_p, candidates);
        using Owned = std::unique_ptr<llama_sampler, decltype(&llama_sampler_free)>;
        Owned chain(llama_sampler_chain_init(params), llama_sampler_free);
        Owned own(llama_sampler_init(draw_functions(), draw.get()), llama_sampler_free);
        llama_sampler_chain_add(chain.get(), own.get());
        own.release();
        draw->chain = chain.release();
        *out        = draw.release();
    });
}

static void door_sampler_free(struct infer_llama_sampler * sampler) {
    wall(nullptr, [=] {
        if (sampler != nullptr) {
            llama_sampler_free(sampler->chain);
        }
        delete sampler;
    });
}

static int32_t door_sampler_attach(struct llama_context * context, int32_t seq, struct infer_llama_sampler * sampler,
                                   infer_llama_error * error) {
    return wall(error, [=] {
        check_seq(needed(context, "context"), seq);
        if (sampler == nullptr) {
            llama_set_sampler(context, seq, nullptr);
            return;
        }
        Draw & draw = *sampler;
        if (draw.attached) {
            refuse("the sampler was attached before; a new one is needed each time");
        }
        const int32_t n = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context)));
        if (n < 1 || draw.candidates > static_cast<uint32_t>(n)) {
            refuse("candidates " + std::to_string(draw.candidates) + " of a vocabulary of " + std::to_string(n));
        }
        draw.attached       = true;
        const bool attached = llama_set_sampler(context, seq, draw.chain);
        // llama.cpp attaches one that its device cannot compute, and would then give neither tokens nor logits.
        if (!attached || !draw.supported) {
            llama_set_sampler(context, seq, nullptr);
            throw Refused { INFER_LLAMA_UNSUPPORTED, "the device that computes the logits cannot draw from them" };
        }
    });
}

static int32_t door_sampler_inputs(struct infer_llama_sampler * sampler, float uniform, float scale, float least, uint32_t top_k,
                                   infer_llama_error * error) {
    return wall(error, [=] {
        Draw & draw = needed(sampler, "sampler");
        if (!(uniform >= 0.0f && uniform < 1.0f)) {
            refuse("uniform is not in 0..1");
        }
        if (!(scale > 0.0f && scale <= FLT_MAX)) {
            refuse("scale is not positive and finite");
        }
        if (!(least <= 0.0f)) {
            refuse("least is not negative or 0");
        }
        if (draw.candidates != 0 && (top_k < 1 || top_k > draw.candidates)) {
            refuse("top_k " + std::to_string(top_k) + " is outside 1..=" + std::to_string(draw.candidates));
        }
        draw.uniform = uniform;
        draw.scale   = scale;
        draw.least   = least;
        draw.rank    = draw.candidates == 0 ? 0 : static_cast<int32_t>(top_k) - 1;
    });
}

static int32_t door_sampled(struct llama_context * context, int32_t index, int32_t * token, float * logprob, infer_llama_error * error) {
    return wall(error, [=] {
        needed(context, "context");
        int32_t & out = needed(token, "token");
        float &   log = needed(logprob, "logprob");
        check_index(index);
        const int32_t n     = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context)));
        const int32_t drawn = llama_get_sampled_token_ith(context, index);
        const float * probs = llama_get_sampled_probs_ith(context, index);
        if (drawn < 0 || drawn >= n || probs == nullptr || llama_get_sampled_probs_count_ith(context, index) != 1) {
            failed("no token was drawn there");
        }
        out = drawn;
        log = *probs;
    });
}

} // extern "C"

#endif // INFER_LLAMA_DOOR_SAMPLER_H
