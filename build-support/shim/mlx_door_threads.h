// Whose is what: every thread that enters has a Home, and every handle knows the one it was made in.
//
// MLX keeps the streams of each thread apart (since 0.31.2), its arrays are changed by whoever computes them, and none of it is locked. So a
// handle is used by its own thread alone, which is checked at every entry; what is freed elsewhere waits for its home.
//
// Streams are MLX's "thread-unsafe" ones, handed to one thread at a time: a stream of MLX has a thread of the system behind it that is never
// ended, so that every thread that comes and goes would leave one behind. MLX looks them up in a map without a lock while it computes,
// hence `Computing`: a stream is only added while nobody computes.
//
// And MLX treats the thread that comes to it first in a way of its own, which no thread here is to have: `nobody_is_first`.
#ifndef INFER_MLX_DOOR_THREADS_H
#define INFER_MLX_DOOR_THREADS_H

#include "mlx_door.h"

#include "mlx/array.h"
#include "mlx/scheduler.h"
#include "mlx/stream.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>

namespace infer_mlx {

class Home;

} // namespace infer_mlx

struct infer_mlx_array {
    mlx::core::array  value;
    infer_mlx::Home * home;
    uint64_t          epoch;    // of the home, when it was made
    uint64_t          failures; // computations of the home that had gone wrong by then
    mutable bool      sound;    // it was seen computed, while none had gone wrong since
    mutable bool      failed;   // its computation was tried and went wrong
};

struct infer_mlx_stream {
    mlx::core::Stream value;
    infer_mlx::Home * home;
    uint64_t          epoch;
};

namespace infer_mlx {

// None of these has a destructor, so they can be used until the very end.
inline std::atomic<uint64_t> live_arrays { 0 };
inline std::atomic<uint64_t> live_streams { 0 };
inline std::atomic<uint64_t> live_buffers { 0 };
inline std::atomic<uint64_t> evals { 0 };

// Made once and never destroyed: threads may enter while the static objects are.
struct Process {
    std::mutex           guard;     // of everything here but `computing`
    Home *               homes = nullptr;
    std::mutex           gate;      // fairness: who waits to add a stream comes before the next that computes
    std::shared_mutex    computing;
    std::map<std::pair<int, int>, std::vector<mlx::core::Stream>> idle; // by device
    std::vector<mlx::core::Stream> streams; // all there are
    std::atomic<bool>              closed { false };
    std::atomic<uint64_t>          put_before { 0 }; // registrations for exit()
};

inline Process & process() {
    static Process * const made = new Process;
    return *made;
}

// What one thread has here. Lives as long as the thread or the last of its handles.
class Home {
public:
    Home() {
        Process & p = process();
        const std::lock_guard<std::mutex> held(p.guard);
        next_ = p.homes;
        if (next_ != nullptr) {
            next_->previous_ = this;
        }
        p.homes = this;
    }

    Home(const Home &)             = delete;
    Home & operator=(const Home &) = delete;

    // For a handle, and for the thread itself.
    void share() { references_.fetch_add(1, std::memory_order_relaxed); }
    void let_go() {
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete this;
        }
    }

    uint64_t epoch() const { return epoch_; }

    // A computation went wrong. What was not seen computed before is not known to be: MLX does not say how far it came.
    void failure() { ++failures_; }
    // Whether what MLX calls evaluated has been computed, and what it calls unscheduled is made of such.
    bool whole(const infer_mlx_array & array) const { return !array.failed && (array.sound || array.failures == failures_); }
    // Something may still be computed that nobody waited for.
    void begun() { in_flight_ = true; }
    void waited() { in_flight_ = in_flight_ && streams_.size() > 1; }
    bool in_flight() const { return in_flight_; }
    // Another thread has come upon an error of this one's streams, and taken it away from MLX.
    void tell_of_failure() { told_.store(true, std::memory_order_release); }
    const std::vector<mlx::core::Stream> & streams() const { return streams_; }

    // These two are called by the home's own thread, the next two by any: `own` says which.
    infer_mlx_array *  array_new(mlx::core::array value);
    infer_mlx_stream * stream_new(mlx::core::Device device);
    void               array_free(infer_mlx_array * array, bool own);
    void               stream_free(infer_mlx_stream * stream, bool own);
    // Hears what other threads have left here: handles to be freed, and news of failures.
    void               sweep();
    // The thread is about to be gone.
    void               end();

    // How deep in entries the thread is: a deleter may call the door again.
    std::atomic<int> inside { 0 };
    Home *           next() const { return next_; }

private:
    ~Home() {
        Process & p = process();
        const std::lock_guard<std::mutex> held(p.guard);
        (previous_ != nullptr ? previous_->next_ : p.homes) = next_;
        if (next_ != nullptr) {
            next_->previous_ = previous_;
        }
    }

    void give_streams_back();
    void destroy(infer_mlx_array * array);

    std::atomic<uint64_t>          references_ { 1 };
    uint64_t                       epoch_   = 0;
    uint64_t                       failures_ = 0;
    bool                           in_flight_ = false;
    std::atomic<bool>              told_ { false };
    size_t                         handles_ = 0; // of streams, of this epoch
    std::vector<mlx::core::Stream> streams_; // changed under the process's guard
    std::recursive_mutex           guard_;       // of what follows; a deleter may call the door again
    std::vector<infer_mlx_array *> left_;        // freed by other threads
    std::atomic<bool>              has_left_ { false };
    bool                           ended_ = false;
    Home *                         next_     = nullptr;
    Home *                         previous_ = nullptr;
};

// Nobody computes while this is held, nobody starts to; and the other way round.
class Computing {
public:
    Computing() {
        if (depth_++ > 0) {
            return;
        }
        Process & p = process();
        const std::lock_guard<std::mutex> turn(p.gate);
        p.computing.lock_shared();
    }

    ~Computing() {
        if (--depth_ == 0) {
            process().computing.unlock_shared();
        }
    }

    Computing(const Computing &)             = delete;
    Computing & operator=(const Computing &) = delete;

    static bool now() { return depth_ > 0; }

private:
    static thread_local int depth_;
};
inline thread_local int Computing::depth_ = 0;

inline infer_mlx_array * Home::array_new(mlx::core::array value) {
    // MLX's operations may return what they were given, computed or not.
    const auto status = value.status();
    const bool lazy   = status == mlx::core::array::Status::unscheduled;
    const bool there  = status == mlx::core::array::Status::available;
    auto *     made   = new infer_mlx_array { std::move(value), this, epoch_, lazy ? failures_ : 0, there, false };
    share();
    live_arrays.fetch_add(1, std::memory_order_relaxed);
    return made;
}

inline void Home::destroy(infer_mlx_array * array) {
    delete array;
    live_arrays.fetch_sub(1, std::memory_order_relaxed);
    let_go();
}

inline void Home::array_free(infer_mlx_array * array, bool own) {
    if (own) {
        return destroy(array);
    }
    share();
    {
        const std::lock_guard<std::recursive_mutex> held(guard_);
        if (ended_) {
            destroy(array);
        } else {
            left_.push_back(array);
            has_left_.store(true, std::memory_order_release);
        }
    }
    let_go();
}

inline void Home::sweep() {
    if (told_.load(std::memory_order_acquire)) {
        told_.store(false, std::memory_order_relaxed);
        failure();
    }
    if (!has_left_.load(std::memory_order_acquire)) {
        return;
    }
    std::vector<infer_mlx_array *> left;
    {
        const std::lock_guard<std::recursive_mutex> held(guard_);
        left.swap(left_);
        has_left_.store(false, std::memory_order_release);
    }
    for (infer_mlx_array * array : left) {
        destroy(array);
    }
}

// The thread that comes to MLX first is told of a stream's error by whatever it hands to that stream next. MLX counts tasks, and has counted that one,
// which never ends then: with more than ten of those, an evaluation of any thread waits for an end that never comes. All other threads are told when they wait
// for what they began, and nothing is lost. So the first that comes is one that computes nothing.
//
// It stays: the system gives the identity of a thread that has ended to the next, unless it is neither joined nor detached, which checkers call a leak.
inline void nobody_is_first() {
    static const bool done = [] {
        constexpr size_t STACK = size_t(1) << 18;
        std::promise<void> here;
        std::future<void>  known = here.get_future();
        const auto first = [](void * given) -> void * {
            {
                std::promise<void> said = std::move(*static_cast<std::promise<void> *>(given));
                try {
                    mlx::core::scheduler::scheduler();
                    said.set_value();
                } catch (...) {
                    said.set_exception(std::current_exception());
                }
            }
            for (;;) {
                std::this_thread::sleep_for(std::chrono::hours(1));
            }
        };
        pthread_attr_t how;
        pthread_t      thread;
        int            failed = pthread_attr_init(&how);
        if (failed == 0) {
            pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
            pthread_attr_setstacksize(&how, STACK);
            failed = pthread_create(&thread, &how, first, &here);
            pthread_attr_destroy(&how);
        }
        if (failed != 0) {
            throw std::system_error(failed, std::generic_category(), "a thread of the door cannot be started");
        }
        known.get();
        return true;
    }();
    static_cast<void>(done);
}

inline infer_mlx_stream * Home::stream_new(mlx::core::Device device) {
    Process & p = process();
    std::unique_lock<std::mutex> held(p.guard);
    auto & idle = p.idle[{ static_cast<int>(device.type), device.index }];
    if (idle.empty()) {
        held.unlock();
        nobody_is_first();
        std::unique_lock<std::shared_mutex> alone;
        {
            const std::lock_guard<std::mutex> turn(p.gate);
            alone = std::unique_lock<std::shared_mutex>(p.computing);
        }
        const mlx::core::Stream made = mlx::core::new_thread_unsafe_stream(device);
        held.lock();
        p.streams.push_back(made);
        idle.push_back(made);
    }
    streams_.reserve(streams_.size() + 1);
    const mlx::core::Stream value = idle.back();
    if (device.type == mlx::core::Device::cpu) {
        // Starts the stream's thread, or throws: an evaluation that could not would be counted as begun, like those of a first thread.
        mlx::core::scheduler::check_error(value);
    }
    auto * made = new infer_mlx_stream { value, this, epoch_ };
    idle.pop_back();
    streams_.push_back(value);
    held.unlock();

    ++handles_;
    share();
    live_streams.fetch_add(1, std::memory_order_relaxed);
    // What MLX asks for when it has nothing better to go by, and would make another one for.
    mlx::core::set_default_stream(value);
    return made;
}

inline void Home::stream_free(infer_mlx_stream * stream, bool own) {
    // Freed elsewhere, the stream itself stays with its thread until that ends or frees its last: MLX may be working on it.
    if (own && stream->epoch == epoch_ && --handles_ == 0) {
        give_streams_back();
    }
    delete stream;
    live_streams.fetch_sub(1, std::memory_order_relaxed);
    let_go();
}

inline void Home::give_streams_back() {
    Process & p = process();
    std::vector<mlx::core::Stream> streams;
    {
        const std::lock_guard<std::mutex> held(p.guard);
        streams.swap(streams_);
    }
    for (const mlx::core::Stream & stream : streams) {
        try {
            mlx::core::synchronize(stream);
        } catch (...) {
            // An error of what was computed last, which nobody waited for.
            failure();
        }
        const std::lock_guard<std::mutex> held(p.guard);
        p.idle[{ static_cast<int>(stream.device.type), stream.device.index }].push_back(stream);
    }
    handles_   = 0;
    in_flight_ = false;
    ++epoch_;
}

inline void Home::end() {
    give_streams_back();
    sweep();
    const std::lock_guard<std::recursive_mutex> held(guard_);
    ended_ = true;
    // What came since.
    for (infer_mlx_array * array : left_) {
        destroy(array);
    }
    left_.clear();
}

// Does what waits for the streams of all threads in MLX, while nobody computes. MLX would take an error that it finds there from the thread that is to
// be told, which would then read what was never computed: so the streams are waited for before, and each thread is told.
inline void alone(const std::function<void()> & run) {
    Process & p = process();
    std::unique_lock<std::shared_mutex> nobody_computes;
    {
        const std::lock_guard<std::mutex> turn(p.gate);
        nobody_computes = std::unique_lock<std::shared_mutex>(p.computing);
    }
    std::vector<std::pair<Home *, mlx::core::Stream>> all;
    {
        const std::lock_guard<std::mutex> held(p.guard);
        for (Home * home = p.homes; home != nullptr; home = home->next()) {
            for (const mlx::core::Stream & stream : home->streams()) {
                home->share();
                all.emplace_back(home, stream);
            }
        }
    }
    for (const auto & [home, stream] : all) {
        try {
            mlx::core::synchronize(stream);
        } catch (...) {
            home->tell_of_failure();
        }
        home->let_go();
    }
    run();
}

// Trivial, so that they can be read while the thread's other objects are destroyed.
inline thread_local Home *   my_home = nullptr;
inline thread_local bool     over    = false;
inline thread_local bool     exiting = false;
inline thread_local uint64_t visits  = 0;

// Longer than it takes a pass to come to its end; not for ever, since a thread inside may wait for the one that called exit().
constexpr std::chrono::seconds PATIENCE { 5 };

inline void close_door() {
    Process & p = process();
    exiting = true;
    p.closed.store(true);
    const auto end  = std::chrono::steady_clock::now() + PATIENCE;
    const auto busy = [&] {
        const std::lock_guard<std::mutex> held(p.guard);
        for (Home * home = p.homes; home != nullptr; home = home->next()) {
            // A deleter may have called exit(): its own thread does not come out any more.
            if (home != my_home && home->inside.load() > 0) {
                return true;
            }
        }
        return false;
    };
    while (busy()) {
        if (std::chrono::steady_clock::now() > end) {
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    // What was begun by `async_eval` goes on in MLX's own threads.
    for (const mlx::core::Stream & stream : p.streams) {
        try {
            mlx::core::synchronize(stream);
        } catch (...) {
            // Nobody is left to be told.
        }
    }
}

// So often that all of MLX's static objects are there, and no more: each takes memory, and threads may come and go for ever.
constexpr uint64_t OFTEN = 4096;

struct EndOfThread {
    bool armed = false;
    ~EndOfThread();
};
inline thread_local EndOfThread end_of_thread;

// A thread that is in an entry.
class Visit {
public:
    Visit() {
        if (over) {
            return;
        }
        if (my_home == nullptr) {
            end_of_thread.armed = true;
            my_home = new Home;
        }
        const int depth = my_home->inside.load(std::memory_order_relaxed);
        my_home->inside.store(depth + 1);
        if (depth > 0 || !process().closed.load()) {
            inside_ = true;
            return;
        }
        my_home->inside.store(0);
        if (exiting) {
            // A destructor that runs in exit(): what it would use may be gone.
            return;
        }
        for (;;) {
            std::this_thread::sleep_for(std::chrono::hours(1));
        }
    }

    ~Visit() {
        if (!inside_) {
            return;
        }
        const int depth = my_home->inside.load(std::memory_order_relaxed);
        // What exit() calls, it calls in the reverse order of registration, destructors of static objects included. Some of these are made
        // when they are first used, so the door is put before them again: after the 1st visit, the 2nd, the 4th, ...
        visits += depth == 1 ? 1 : 0;
        if (depth == 1 && (visits & (visits - 1)) == 0 && process().put_before.fetch_add(1, std::memory_order_relaxed) < OFTEN) {
            std::atexit(close_door);
        }
        my_home->inside.store(depth - 1, std::memory_order_release);
    }

    Visit(const Visit &)             = delete;
    Visit & operator=(const Visit &) = delete;

    // Not so when the thread, or the process, is ending.
    bool   inside() const { return inside_; }
    Home & home() const { return *my_home; }

private:
    bool inside_ = false;
};

inline EndOfThread::~EndOfThread() {
    if (my_home == nullptr) {
        return;
    }
    {
        const Visit visit;
        if (!visit.inside()) {
            return;
        }
        my_home->end();
    }
    over = true;
    Home * const home = my_home;
    my_home = nullptr;
    home->let_go();
}

} // namespace infer_mlx

#endif // INFER_MLX_DOOR_THREADS_H
