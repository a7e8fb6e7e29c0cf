#include "common/threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#ifndef _WIN32
#include <pthread.h>
#endif

namespace lowland {
namespace {

struct Job {
    std::int64_t n_tasks;
    Task run;
    void* context;
    std::atomic<std::int64_t> next_task{0};
    int next_slot = 1;  // the caller has slot 0; guarded by the pool's mutex
    int helpers = 0;    // threads inside this job; guarded by the pool's mutex

    void work(int slot) {
        for (std::int64_t task; (task = next_task.fetch_add(1)) < n_tasks;) {
            run(context, task, slot);
        }
    }
};

class Pool {
   public:
    void run(Job& job, int n_threads) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            while (n_workers_ < n_threads - 1) {
                std::thread(&Pool::serve, this).detach();
                ++n_workers_;
            }
            for (int i = 1; i < n_threads; ++i) tickets_.push_back(&job);
        }
        work_.notify_all();
        job.work(0);
        // Tickets that no thread took are withdrawn; only threads already inside are waited for.
        std::unique_lock<std::mutex> lock(mutex_);
        tickets_.erase(std::remove(tickets_.begin(), tickets_.end(), &job), tickets_.end());
        done_.wait(lock, [&] { return job.helpers == 0; });
    }

   private:
    void serve() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            work_.wait(lock, [&] { return !tickets_.empty(); });
            Job* job = tickets_.front();
            tickets_.pop_front();
            const int slot = job->next_slot++;
            ++job->helpers;
            lock.unlock();
            job->work(slot);
            lock.lock();
            if (--job->helpers == 0) done_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable work_, done_;
    std::deque<Job*> tickets_;
    int n_workers_ = 0;
};

// The pool is never destroyed: its detached threads may outlive every static object. A forked child
// has none of these threads, so it drops the parent's pool and makes its own at the first call.
std::atomic<Pool*> the_pool{nullptr};

Pool& pool() {
    Pool* current = the_pool.load();
    if (current == nullptr) {
        Pool* fresh = new Pool;
        if (the_pool.compare_exchange_strong(current, fresh)) {
            current = fresh;
#ifndef _WIN32
            static const int registered =
                pthread_atfork(nullptr, nullptr, [] { the_pool.store(nullptr); });
            (void)registered;
#endif
        } else {
            delete fresh;
        }
    }
    return *current;
}

}  // namespace

void parallel_for(std::int64_t n_tasks, int n_threads, Task run, void* context) {
    n_threads = static_cast<int>(std::min<std::int64_t>(n_threads, n_tasks));
    Job job{n_tasks, run, context};
    if (n_threads <= 1) {
        job.work(0);
    } else {
        pool().run(job, n_threads);
    }
}

class Crew {
   public:
    explicit Crew(int n_threads) : alone_(n_threads <= 1) {}

    // By the leader only, one loop at a time.
    void loop(std::int64_t n_tasks, Task run, void* context) {
        if (alone_ || n_tasks <= 1 || n_tasks > kMostTasks) {
            for (std::int64_t task = 0; task < n_tasks; ++task) run(context, task, 0);
            return;
        }
        run_ = run;
        context_ = context;
        done_.store(0, std::memory_order_relaxed);
        ++number_;
        state_.store(number_ << 40 | static_cast<std::uint64_t>(n_tasks) << 20,
                     std::memory_order_release);
        take(0);
        for (int spins = 0; done_.load(std::memory_order_acquire) < n_tasks; ++spins) wait(spins);
    }

    void end() { over_.store(true, std::memory_order_release); }

    void serve(int slot) {
        for (int spins = 0; !over_.load(std::memory_order_acquire); ++spins) {
            if (take(slot)) spins = 0;
            wait(spins);
        }
    }

   private:
    // The state holds the number of the loop, its number of tasks and the next task, so that a
    // thread that comes late never takes the tasks of one loop for those of another.
    static constexpr std::uint64_t kField = (1u << 20) - 1;
    static constexpr std::int64_t kMostTasks = (1 << 20) - 4096;  // threads may count beyond the end

    static bool has_tasks(std::uint64_t state) { return (state & kField) < (state >> 20 & kField); }

    bool take(int slot) {
        bool took = false;
        while (has_tasks(state_.load(std::memory_order_acquire))) {
            const std::uint64_t state = state_.fetch_add(1, std::memory_order_acq_rel);
            if (!has_tasks(state)) break;
            run_(context_, static_cast<std::int64_t>(state & kField), slot);
            done_.fetch_add(1, std::memory_order_release);
            took = true;
        }
        return took;
    }

    static void wait(int spins) {
        if (spins % 1024 == 1023) {
            std::this_thread::yield();
        } else {
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
    }

    const bool alone_;
    Task run_ = nullptr;
    void* context_ = nullptr;
    std::uint64_t number_ = 0;
    alignas(64) std::atomic<std::uint64_t> state_{0};
    alignas(64) std::atomic<std::int64_t> done_{0};
    std::atomic<bool> over_{false};
};

void with_crew(int n_threads, Leading work, void* context) {
    struct Call {
        Crew crew;
        Leading work;
        void* context;
    } call{Crew(n_threads), work, context};
    parallel_for(
        std::max(1, n_threads), n_threads,
        [](void* given, std::int64_t task, int) {
            Call& call = *static_cast<Call*>(given);
            if (task == 0) {
                call.work(call.crew, call.context);
                call.crew.end();
            } else {
                call.crew.serve(static_cast<int>(task));
            }
        },
        &call);
}

void crew_for(Crew& crew, std::int64_t n_tasks, Task run, void* context) {
    crew.loop(n_tasks, run, context);
}

}  // namespace lowland
