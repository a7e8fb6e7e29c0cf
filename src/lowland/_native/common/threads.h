// A small thread pool of our own. No OpenMP: two OpenMP runtimes in one process crash users.
//
// parallel_for hands the numbers 0 .. n_tasks-1 to at most n_threads threads, the caller among
// them. It may be called from several threads at once and from inside a task (the caller always
// works itself, so nothing can wait for a thread that does not come), and it works after fork.
// Which thread gets which task is left to chance: a kernel is deterministic because each task
// writes only what is its own, in an order that does not depend on the number of threads.
#pragma once
#include <cstdint>

namespace lowland {

// slot: a number below n_threads that no two running tasks of one call share (for scratch space).
using Task = void (*)(void* context, std::int64_t task, int slot);

void parallel_for(std::int64_t n_tasks, int n_threads, Task run, void* context);

// A crew of threads stays awake for many short loops in a row, such as the steps of a training: to
// wake a thread takes as long as such a loop. One thread, the leader, runs `work`; the others wait
// actively for the loops that it starts with crew_for, and yield now and then. A loop waits only for
// tasks that were taken, so it ends whether other threads have come or not.
class Crew;
using Leading = void (*)(Crew& crew, void* context);

void with_crew(int n_threads, Leading work, void* context);
void crew_for(Crew& crew, std::int64_t n_tasks, Task run, void* context);

}  // namespace lowland
