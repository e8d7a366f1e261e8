// Memory that the system refuses.
//
// Where there is no memory MLX's allocator for the CPU returns NULL, and MLX writes to it: the process ends. All of MLX gets its allocator by one function,
// which its library calls through its table of addresses, as ELF has it. The address there is exchanged for one of a function that gives
// MLX's allocator behind one that throws. Where the table is not like that, nothing is changed; what the door asks for itself is an exception anywhere.
//
// And MLX counts what it was refused as if it had it, for ever: beyond its limit it would compute one thing at a time. So the system is asked first.
#ifndef INFER_MLX_DOOR_MEMORY_H
#define INFER_MLX_DOOR_MEMORY_H

#include "mlx/allocator.h"
#include "mlx/memory.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#ifdef __linux__
#    include <sys/mman.h>
#endif

#ifndef INFER_MLX_VARIANT
#    define INFER_MLX_VARIANT "cpu"
#endif

namespace {

using mlx::core::allocator::Allocator;
using mlx::core::allocator::Buffer;

// What the wall takes for a lack of memory, with how much was asked for. It is known by its first word: of an exception on a stream's thread MLX keeps
// no more than the text.
class NoMemory final : public std::bad_alloc {
public:
    explicit NoMemory(size_t bytes) noexcept {
        std::snprintf(message_, sizeof(message_), "std::bad_alloc: the system has no memory for an array of %zu bytes", bytes);
    }

    const char * what() const noexcept override { return message_; }

private:
    char message_[96];
};

// Whether the system has no memory of so many bytes, as far as can be seen from here: MLX looks into its cache first, and what may lie there is not
// refused.
bool is_refused(size_t bytes) {
#ifdef __linux__
    if (std::strcmp(INFER_MLX_VARIANT, "cpu") != 0 || mlx::core::get_cache_memory() >= bytes) {
        return false;
    }
    // Not by malloc, whose ways change with what is given back to it: it would hand out the next piece of that size from its heap.
    void * const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages != MAP_FAILED) {
        munmap(pages, bytes);
        return false;
    }
    // It may have such a piece there. (Volatile, or compilers leave both calls away.)
    void * volatile piece = std::malloc(bytes);
    const bool none = piece == nullptr;
    std::free(piece);
    return none;
#else
    return false;
#endif
}

// MLX's allocator, whose NULL is an exception.
class Refusing final : public Allocator {
public:
    explicit Refusing(Allocator & inner) : inner_(inner) {}

    Buffer malloc(size_t size) override {
        if (size >= LARGE && is_refused(size)) {
            throw NoMemory(size);
        }
        const Buffer buffer = inner_.malloc(size);
        if (buffer.ptr() == nullptr && size > 0) {
            throw NoMemory(size);
        }
        return buffer;
    }

    void   free(Buffer buffer) override { inner_.free(buffer); }
    size_t size(Buffer buffer) const override { return inner_.size(buffer); }
    Buffer make_buffer(void * ptr, size_t size) override { return inner_.make_buffer(ptr, size); }
    void   release(Buffer buffer) override { inner_.release(buffer); }

private:
    // From here on the question takes no time beside that of filling what is given.
    static constexpr size_t LARGE = size_t(1) << 20;

    Allocator & inner_;
};

// In the place of MLX's own function, which this library still calls by itself.
Allocator & refusing_allocator() {
    // Never destroyed: arrays are freed to the very end.
    static Refusing * const made = new Refusing(mlx::core::allocator::allocator());
    return *made;
}

// Memory for an output, or an exception: MLX's own allocator returns NULL, and writes to it.
Buffer memory_for(size_t bytes) {
    return refusing_allocator().malloc(bytes);
}

// Numbers that a kernel keeps while it runs, on the stream's thread: asked for there, so that operations that wait for each other share it. Nothing is in
// it yet. An exception there becomes the error of the evaluation, like that of an output.
class Scratch {
public:
    Scratch(int64_t rows, int64_t columns) : buffer_(memory_for(bytes(rows, columns) + LINE)) {}
    ~Scratch() { mlx::core::allocator::free(buffer_); }

    Scratch(const Scratch &)             = delete;
    Scratch & operator=(const Scratch &) = delete;

    // From the start of a cache line on.
    float * data() {
        auto * const at = static_cast<char *>(buffer_.raw_ptr());
        return reinterpret_cast<float *>(at + (LINE - reinterpret_cast<uintptr_t>(at) % LINE) % LINE);
    }

private:
    static constexpr size_t LINE = 64;

    // More than can be counted is more than there is.
    static size_t bytes(int64_t rows, int64_t columns) {
        int64_t bytes = 0;
        const bool counts = !__builtin_mul_overflow(rows, columns, &bytes) && !__builtin_mul_overflow(bytes, int64_t(sizeof(float)), &bytes);
        return static_cast<size_t>(counts ? bytes : std::numeric_limits<int64_t>::max());
    }

    Buffer buffer_;
};

} // namespace

// Elsewhere glibc leaves the addresses in the dynamic section as they are in the file.
#if defined(__linux__) && defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))

#    include "mlx/version.h"

#    include <dlfcn.h>
#    include <elf.h>
#    include <link.h>

namespace {

// The part of a library's dynamic section with this tag; NULL for none.
const ElfW(Dyn) * part_of(const link_map & library, ElfW(Sxword) tag) {
    for (const ElfW(Dyn) * part = library.l_ld; part->d_tag != DT_NULL; ++part) {
        if (part->d_tag == tag) {
            return part;
        }
    }
    return nullptr;
}

// Exchanges the address, once, before anything is asked of MLX.
void refuse_memory_by_exception() {
    constexpr const char * NAME = "_ZN3mlx4core9allocator9allocatorEv";
    Dl_info info {};
    link_map * mlx = nullptr;
    if (dladdr1(reinterpret_cast<const void *>(&mlx::core::version), &info, reinterpret_cast<void **>(&mlx), RTLD_DL_LINKMAP) == 0 || mlx == nullptr) {
        return;
    }
    const auto * calls = part_of(*mlx, DT_JMPREL), * bytes = part_of(*mlx, DT_PLTRELSZ), * kind = part_of(*mlx, DT_PLTREL);
    const auto * symbols = part_of(*mlx, DT_SYMTAB), * names = part_of(*mlx, DT_STRTAB);
    const auto * flags = part_of(*mlx, DT_FLAGS), * more = part_of(*mlx, DT_FLAGS_1);
    // Of a library that is bound whole when it is loaded the table is read-only.
    const bool whole = part_of(*mlx, DT_BIND_NOW) != nullptr || (flags != nullptr && (flags->d_un.d_val & DF_BIND_NOW) != 0) ||
                       (more != nullptr && (more->d_un.d_val & DF_1_NOW) != 0);
    if (whole || calls == nullptr || bytes == nullptr || kind == nullptr || kind->d_un.d_val != DT_RELA || symbols == nullptr || names == nullptr) {
        return;
    }
    const auto * entries = reinterpret_cast<const ElfW(Rela) *>(calls->d_un.d_ptr);
    const auto * table   = reinterpret_cast<const ElfW(Sym) *>(symbols->d_un.d_ptr);
    const auto * texts   = reinterpret_cast<const char *>(names->d_un.d_ptr);
    for (size_t i = 0; i < bytes->d_un.d_val / sizeof(*entries); ++i) {
        if (std::strcmp(texts + table[ELF64_R_SYM(entries[i].r_info)].st_name, NAME) == 0) {
            auto * const place = reinterpret_cast<Allocator & (**)()>(mlx->l_addr + entries[i].r_offset);
            __atomic_store_n(place, &refusing_allocator, __ATOMIC_RELEASE);
        }
    }
}

} // namespace

#else

namespace {

void refuse_memory_by_exception() {}

} // namespace

#endif

#endif // INFER_MLX_DOOR_MEMORY_H
