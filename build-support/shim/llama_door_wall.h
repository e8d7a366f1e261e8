// The wall that every entry stands behind: what is thrown inside becomes a status, and pointers and buffers are looked at first.
#ifndef INFER_LLAMA_DOOR_WALL_H
#define INFER_LLAMA_DOOR_WALL_H

#include "llama_door.h"
#include "llama_door_exit.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

// A status with a message, thrown inside the wall only.
struct Refused {
    int32_t     status;
    std::string message;
};

[[noreturn]] void refuse(std::string message) {
    throw Refused { INFER_LLAMA_ARGUMENT, std::move(message) };
}

[[noreturn]] void failed(const char * what) {
    throw Refused { INFER_LLAMA_FAILED, std::string(what) + "; the reason, if there is one, is in llama.cpp's log" };
}

[[noreturn]] void system_error(const char * what) {
    throw Refused { INFER_LLAMA_IO, std::string(what) + ": " + std::strerror(errno) };
}

// Must not throw: it runs while an exception is being handled.
int32_t report(infer_llama_error * error, int32_t status, const char * message) noexcept {
    if (error == nullptr) {
        return status;
    }
    error->code = status;
    size_t len = std::strlen(message);
    if (len >= sizeof(error->message)) {
        len = sizeof(error->message) - 1;
        // Back to the start of the character that was cut: continuation bytes are 10xxxxxx.
        while (len > 0 && (static_cast<unsigned char>(message[len]) & 0xC0) == 0x80) {
            --len;
        }
    }
    std::memcpy(error->message, message, len);
    error->message[len] = '\0';
    return status;
}

template <typename F>
int32_t wall(infer_llama_error * error, F && body) noexcept {
    const Visit visit;
    if (visit.refused()) {
        return report(error, INFER_LLAMA_FAILED, "the process is ending");
    }
    try {
        body();
        return INFER_LLAMA_OK;
    } catch (const Refused & e) {
        return report(error, e.status, e.message.c_str());
    } catch (const std::bad_alloc & e) {
        return report(error, INFER_LLAMA_MEMORY, e.what());
    } catch (const std::length_error & e) {
        return report(error, INFER_LLAMA_MEMORY, e.what());
    } catch (const std::exception & e) {
        return report(error, INFER_LLAMA_EXCEPTION, e.what());
    } catch (...) {
        return report(error, INFER_LLAMA_UNKNOWN, "a C++ exception of unknown type");
    }
}

template <typename T>
T & needed(T * pointer, const char * name) {
    if (pointer == nullptr) {
        refuse(std::string(name) + " is NULL");
    }
    return *pointer;
}

// ---- buffers ----

int32_t clamped(size_t cap) {
    return cap > INT32_MAX ? INT32_MAX : static_cast<int32_t>(cap);
}

// The shape of llama.cpp's own string getters: the length without the NUL, whatever the buffer holds; negative on failure.
template <typename F>
void fill_string(char * buf, size_t cap, size_t * len, const char * what, F && get) {
    size_t & out = needed(len, "len");
    // snprintf fails on a size over INT_MAX, however short the text.
    const int32_t n = buf == nullptr ? get(nullptr, 0) : get(buf, clamped(cap));
    if (n < 0) {
        failed(what);
    }
    out = static_cast<size_t>(n);
    if (buf == nullptr || out >= cap) {
        throw Refused { INFER_LLAMA_TOO_SMALL, "the buffer holds less than the string and its NUL" };
    }
}

// The shape of llama.cpp's tokenizer: a count, or the negative of the count wanted.
void fill_counted(int32_t n, size_t * out, const char * what) {
    if (n == INT32_MIN) {
        refuse(std::string(what) + ": the result has more than 2^31 elements");
    }
    *out = static_cast<size_t>(n < 0 ? -n : n);
    if (n < 0) {
        throw Refused { INFER_LLAMA_TOO_SMALL, std::string(what) + ": the buffer is too small" };
    }
}

} // namespace

#endif // INFER_LLAMA_DOOR_WALL_H
