// The table behind `infer_mlx_api`: mlx_door.h says what each entry promises.
//
// Three defences stand in front of every call. `wall` turns an exception into a status, because one that reached Rust would end the process. A
// handle is compared with the thread it is used on, because MLX does not. And sizes and indices are looked at where MLX would write out of
// bounds.
//
// One translation unit: the other headers of the folder are parts of it, by theme.

#include "mlx_door_arrays.h"
#include "mlx_door_kernels.h"
#include "mlx_door_memory.h"
#include "mlx_door_ops.h"
#include "mlx_door_shapes.h"
#include "mlx_door_threads.h"
#include "mlx_door_wall.h"

#include "mlx/version.h"

#ifndef INFER_MLX_C_VERSION
#    error "define INFER_MLX_C_VERSION: the pinned version of mlx-c, as a string"
#endif

#define INFER_MLX_TEXT_(x) #x
#define INFER_MLX_TEXT(x)  INFER_MLX_TEXT_(x)

namespace {

std::string text_of(const std::unordered_map<std::string, std::variant<std::string, size_t>> & info, const char * key) {
    const auto found = info.find(key);
    const auto * text = found == info.end() ? nullptr : std::get_if<std::string>(&found->second);
    return text == nullptr ? std::string() : *text;
}

template <size_t N>
void fill(char (&place)[N], const std::string & text) {
    const size_t len = std::min(text.size(), N - 1);
    std::memcpy(place, text.data(), len);
    place[len] = '\0';
}

// Sets a limit, and gives back the one there was.
int32_t limited(uint64_t bytes, uint64_t * previous, size_t (*set)(size_t)) {
    return wall([&](Home &) {
        // What counts as too large is MLX's own limit, which the user's is not to be taken for.
        most_bytes();
        const size_t before = set(static_cast<size_t>(bytes));
        if (previous != nullptr) {
            *previous = before;
        }
    });
}

} // namespace

extern "C" {

// ---- the process ----

static const char * door_last_error(void) {
    return message_of_this_thread;
}

static void door_live(infer_mlx_live * out) {
    if (out != nullptr) {
        *out = { live_arrays.load(), live_streams.load(), live_buffers.load(), evals.load() };
    }
}

static int32_t door_device_count(int32_t type, int32_t * out) {
    return wall([&](Home &) {
        int32_t & count = needed(out, "out");
        if (type != INFER_MLX_CPU && type != INFER_MLX_GPU) {
            refuse("there is no type of devices " + std::to_string(type));
        }
        count = mlx::core::device_count(type == INFER_MLX_CPU ? mlx::core::Device::cpu : mlx::core::Device::gpu);
    });
}

static int32_t door_device_info(int32_t type, int32_t index, infer_mlx_device * out) {
    return wall([&](Home &) {
        infer_mlx_device &      device = needed(out, "out");
        const mlx::core::Device which  = device_of(type, index);
        const auto &            info   = mlx::core::device_info(which);
        device.type         = type;
        device.index        = index;
        device.available    = mlx::core::is_available(which);
        device.memory_total = 0;
        for (const char * key : { "total_memory", "memory_size" }) {
            const auto found = info.find(key);
            if (const auto * bytes = found == info.end() ? nullptr : std::get_if<size_t>(&found->second)) {
                device.memory_total = *bytes;
            }
        }
        fill(device.name, text_of(info, "device_name"));
        fill(device.architecture, text_of(info, "architecture"));
    });
}

static int32_t door_memory(infer_mlx_memory * out) {
    return wall([&](Home &) {
        infer_mlx_memory & memory = needed(out, "out");
        memory.active = mlx::core::get_active_memory();
        memory.peak   = mlx::core::get_peak_memory();
        memory.cache  = mlx::core::get_cache_memory();
        memory.limit  = mlx::core::get_memory_limit();
    });
}

static int32_t door_reset_peak_memory(void) {
    return wall([](Home &) { mlx::core::reset_peak_memory(); });
}

static int32_t door_set_cache_limit(uint64_t bytes, uint64_t * previous) {
    return wall([&](Home &) {
        outside_of_computing("the limit of the cache set");
        alone([&] {
            const size_t before = mlx::core::set_cache_limit(static_cast<size_t>(bytes));
            if (previous != nullptr) {
                *previous = before;
            }
        });
    });
}

static int32_t door_clear_cache(void) {
    return wall([](Home &) {
        outside_of_computing("the cache cleared");
        alone([] { mlx::core::clear_cache(); });
    });
}

static int32_t door_set_memory_limit(uint64_t bytes, uint64_t * previous) {
    return limited(bytes, previous, mlx::core::set_memory_limit);
}

static int32_t door_set_wired_limit(uint64_t bytes, uint64_t * previous) {
    return limited(bytes, previous, mlx::core::set_wired_limit);
}

// ---- the table ----

const infer_mlx_table * infer_mlx_api(uint32_t version) {
    if (version != 0 && version != INFER_MLX_DOOR_VERSION) {
        return nullptr;
    }
    static const infer_mlx_table table = [] {
        // Before anything can fail: mlx-c's own one prints to stdout and ends the process.
        mlx_set_error_handler(on_mlx_error, nullptr, nullptr);
        refuse_memory_by_exception();

        infer_mlx_table t = {};
        t.size              = sizeof(infer_mlx_table);
        t.version           = INFER_MLX_DOOR_VERSION;
        t.mlx_version       = mlx::core::version();
        t.mlx_pinned        = INFER_MLX_TEXT(MLX_VERSION_MAJOR) "." INFER_MLX_TEXT(MLX_VERSION_MINOR) "." INFER_MLX_TEXT(MLX_VERSION_PATCH);
        t.mlx_c_version     = INFER_MLX_C_VERSION;
        t.variant           = INFER_MLX_VARIANT;
        t.sizeof_device     = sizeof(infer_mlx_device);
        t.sizeof_array_info = sizeof(infer_mlx_array_info);
        t.sizeof_memory     = sizeof(infer_mlx_memory);
        t.sizeof_live       = sizeof(infer_mlx_live);

        t.last_error        = door_last_error;
        t.live              = door_live;
        t.device_count      = door_device_count;
        t.device_info       = door_device_info;
        t.memory            = door_memory;
        t.reset_peak_memory = door_reset_peak_memory;
        t.set_cache_limit   = door_set_cache_limit;
        t.clear_cache       = door_clear_cache;
        t.set_memory_limit  = door_set_memory_limit;
        t.set_wired_limit   = door_set_wired_limit;

        t.stream_new        = door_stream_new;
        t.stream_free       = door_stream_free;
        t.synchronize       = door_synchronize;

        t.arrays_free       = door_arrays_free;
        t.array_share       = door_array_share;
        t.array_copy_from   = door_array_copy_from;
        t.array_uninit      = door_array_uninit;
        t.array_over        = door_array_over;
        t.array_info        = door_array_info;
        t.array_data        = door_array_data;
        t.array_item        = door_array_item;
        t.eval              = door_eval;
        t.async_eval        = door_async_eval;

        t.full              = door_full;
        t.arange            = door_arange;

        t.unary             = door_unary;
        t.binary            = door_binary;
        t.binary_scalar     = door_binary_scalar;
        t.select            = door_select;
        t.clip              = door_clip;
        t.astype            = door_astype;
        t.view              = door_view;

        t.reshape           = door_reshape;
        t.broadcast_to      = door_broadcast_to;
        t.transpose         = door_transpose;
        t.expand_dims       = door_expand_dims;
        t.squeeze           = door_squeeze;
        t.contiguous        = door_contiguous;
        t.slice             = door_slice;
        t.slice_update      = door_slice_update;
        t.concatenate       = door_concatenate;
        t.stack             = door_stack;
        t.split             = door_split;
        t.repeat            = door_repeat;
        t.tril              = door_tril;
        t.triu              = door_triu;

        t.take              = door_take;
        t.take_along_axis   = door_take_along_axis;
        t.put_along_axis    = door_put_along_axis;

        t.reduce            = door_reduce;
        t.scan              = door_scan;
        t.softmax           = door_softmax;
        t.sort              = door_sort;
        t.argsort           = door_argsort;
        t.argpartition      = door_argpartition;
        t.topk              = door_topk;

        t.addmm             = door_addmm;
        t.quantized_matmul  = door_quantized_matmul;
        t.dequantize        = door_dequantize;
        t.quantize          = door_quantize;
        t.rms_norm          = door_rms_norm;
        t.layer_norm        = door_layer_norm;
        t.rope              = door_rope;
        t.rope_at           = door_rope_at;
        t.attention         = door_attention;
        t.kv_write          = door_kv_write;
        return t;
    }();
    return &table;
}

} // extern "C"
