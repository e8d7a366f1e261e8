// The end of the process: `exit()` runs the destructors of llama.cpp's and ggml's static objects, whatever other threads are doing. One that
// is inside an entry then reads freed memory. So the door closes first: passes and loads that run are told to stop, it is waited
// until the last thread has come out, and whoever comes later does not get in.
#ifndef INFER_LLAMA_DOOR_EXIT_H
#define INFER_LLAMA_DOOR_EXIT_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace {

// Longer than it takes a pass to see that it is to stop; not for ever, since a thread inside may wait for the one that called exit().
constexpr std::chrono::seconds PATIENCE { 5 };

// None of these has a destructor, so they can be used until the very end.
std::atomic<bool>     closed { false };
std::atomic<int64_t>  inside { 0 };
std::atomic<uint64_t> visits { 0 };
// How many entries this thread is in: a callback may call the door again.
thread_local int  depth   = 0;
thread_local bool exiting = false;

bool process_ends() {
    return closed.load(std::memory_order_relaxed);
}

void close_door() {
    exiting = true;
    closed.store(true);
    // A callback may have called exit(): its own thread does not come out any more.
    const int64_t own = depth > 0 ? 1 : 0;
    const auto    end = std::chrono::steady_clock::now() + PATIENCE;
    while (inside.load() > own && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

// A thread that is in an entry.
class Visit {
public:
    Visit() noexcept {
        if (depth++ > 0) {
            return;
        }
        inside.fetch_add(1);
        if (!closed.load()) {
            return;
        }
        inside.fetch_sub(1);
        if (exiting) {
            // A destructor that runs in exit(): it is refused, since what it would use may be gone.
            refused_ = true;
            return;
        }
        for (;;) {
            std::this_thread::sleep_for(std::chrono::hours(1));
        }
    }

    ~Visit() {
        if (--depth > 0 || refused_) {
            return;
        }
        // What exit() calls, it calls in the reverse order of registration, destructors of static objects included. Some of these are made when
        // they are first used, so the door is put before them again: after the 1st visit, the 2nd, the 4th, ...
        const uint64_t n = visits.fetch_add(1, std::memory_order_relaxed) + 1;
        if ((n & (n - 1)) == 0) {
            std::atexit(close_door);
        }
        inside.fetch_sub(1);
    }

    Visit(const Visit &)             = delete;
    Visit & operator=(const Visit &) = delete;

    bool refused() const { return refused_; }

private:
    bool refused_ = false;
};

} // namespace

#endif // INFER_LLAMA_DOOR_EXIT_H
