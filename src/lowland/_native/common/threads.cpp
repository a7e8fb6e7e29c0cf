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
        // Tickets that nobody took are withdrawn; only threads already inside are waited for.
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

}  // namespace lowland
