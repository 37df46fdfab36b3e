/**
 * @file
 * What the events of a .NET trace mean: functions by their weight, stacks, garbage collections, counters, heap snapshots.
 * For C99 and C++17. This file is generated from the Rust source; README.md is the introduction.
 *
 * The rules of dotnet_ipc.h for pointers and errors hold here too, with these differences:
 *
 * Memory. The library allocates, and ends the process if there is no memory. `dipc_analysis_free` frees an analysis. The
 * texts of its tables are UTF-8 without a NUL, and valid until then.
 *
 * Threads. Two threads must not use one analysis at the same time.
 *
 * Errors. Functions of tables return DIPC_STATUS_WRONG_KIND before `dipc_analysis_finish`. A fault of the library itself
 * is DIPC_STATUS_FAULT; then only `dipc_analysis_free` can be called.
 */

#ifndef DOTNET_IPC_ANALYSIS_H
#define DOTNET_IPC_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "dotnet_ipc.h"

/**
 * Samples of threads that run managed code, as in `dotnet-ipc report`. If samples do not tell which threads run, all
 * samples count, and `dipc_analysis_summary.clock` is `DIPC_CLOCK_WALL`.
 */
#define DIPC_CLOCK_CPU 0

/**
 * All samples.
 */
#define DIPC_CLOCK_WALL 1

/**
 * Nanoseconds from sample to sample, waiting included.
 */
#define DIPC_CLOCK_THREAD_TIME 2

/**
 * Allocated bytes.
 */
#define DIPC_CLOCK_ALLOCATIONS 3

/**
 * Allocated bytes, with the type of the object as the innermost function.
 */
#define DIPC_CLOCK_ALLOCATED_TYPES 4

/**
 * Thrown exceptions.
 */
#define DIPC_CLOCK_EXCEPTIONS 5

/**
 * Nanoseconds of waiting for locks.
 */
#define DIPC_CLOCK_CONTENTION 6

/**
 * Nanoseconds of waiting on WaitHandles.
 */
#define DIPC_CLOCK_WAITS 7

/**
 * All events with a stack.
 */
#define DIPC_CLOCK_ALL_EVENTS 8

/**
 * The functions with the largest `exclusive` first.
 */
#define DIPC_ORDER_EXCLUSIVE 0

/**
 * The functions with the largest `inclusive` first.
 */
#define DIPC_ORDER_INCLUSIVE 1

/**
 * The functions with the largest `own` first, of those that have any.
 */
#define DIPC_ORDER_OWN 2

/**
 * A time or a duration that the trace does not have.
 */
#define DIPC_NOT_KNOWN INT64_MIN

/**
 * The analysis of one trace, in memory of the library.
 */
typedef struct dipc_analysis dipc_analysis;

/**
 * What an analysis has found.
 */
typedef struct dipc_analysis_summary {
    /**
     * How the trace ends. What comes before a truncated end or outside of a corrupt part was read.
     */
    dipc_end end;
    /**
     * The number of events.
     */
    uint64_t events;
    /**
     * The number of events that the runtime did not record.
     */
    uint64_t lost;
    /**
     * The clock of the functions: one of `DIPC_CLOCK_*`.
     */
    uint32_t clock;
    /**
     * The number of events that the clock counts.
     */
    uint64_t counted;
    /**
     * The weight of all stacks together: a function has the share `exclusive / total`.
     */
    uint64_t total;
    /**
     * The share of frames without a name, in percent.
     */
    double unnamed;
    /**
     * The number of functions.
     */
    size_t functions;
    /**
     * The number of garbage collections.
     */
    size_t collections;
    /**
     * The number of samples of counters.
     */
    size_t counters;
    /**
     * The number of types of the heap snapshots.
     */
    size_t heap_types;
} dipc_analysis_summary;

/**
 * A function. Weights are in the unit of the clock.
 */
typedef struct dipc_analysis_function_row {
    /**
     * The name: `module!Type.Method(args)`.
     */
    dipc_text name;
    /**
     * The weight of the stacks in which it is the innermost function.
     */
    uint64_t exclusive;
    /**
     * The weight of the stacks that contain it.
     */
    uint64_t inclusive;
    /**
     * The weight of the stacks in which it is the innermost function of the program; 0 for other code.
     */
    uint64_t own;
    /**
     * Whether it is code of the program, and not of .NET or of Microsoft's libraries.
     */
    bool is_own;
} dipc_analysis_function_row;

/**
 * A garbage collection. Times are nanoseconds from the start of the trace, durations nanoseconds, sizes bytes.
 */
typedef struct dipc_analysis_collection_row {
    /**
     * The id of the process; 0 if the trace does not state it.
     */
    uint64_t process_id;
    /**
     * The number of the collection in its process.
     */
    uint32_t number;
    /**
     * The oldest generation that is collected.
     */
    uint32_t generation;
    /**
     * `NonConcurrentGC`, `BackgroundGC` or `ForegroundGC`; a null text if it is not known.
     */
    dipc_text kind;
    /**
     * The reason, as `AllocSmall`; a null text if it is not known.
     */
    dipc_text reason;
    /**
     * The time at which it started, after the suspension; or `DIPC_NOT_KNOWN`.
     */
    int64_t start;
    /**
     * The time at which the runtime began to suspend the program, or `DIPC_NOT_KNOWN`.
     */
    int64_t pause_start;
    /**
     * How long the program was paused, or `DIPC_NOT_KNOWN`.
     */
    int64_t pause;
    /**
     * How much of the pause it took to suspend all threads, or `DIPC_NOT_KNOWN`.
     */
    int64_t suspension;
    /**
     * The duration, in which the program runs if this is a background collection, or `DIPC_NOT_KNOWN`.
     */
    int64_t duration;
    /**
     * Whether the following sizes are known.
     */
    bool has_sizes;
    /**
     * The sizes after the collection: generations 0, 1 and 2, large objects, pinned objects.
     */
    uint64_t after[5];
    /**
     * The bytes of each part that survived.
     */
    uint64_t promoted[5];
    /**
     * Whether the trace has all events of the collection.
     */
    bool is_complete;
} dipc_analysis_collection_row;

/**
 * The measurement of a counter or an instrument in an interval. A number that the program does not state is NaN.
 */
typedef struct dipc_analysis_counter_row {
    /**
     * The nanoseconds from the start of the trace.
     */
    int64_t time;
    /**
     * The id of the process; 0 if the trace does not state it.
     */
    uint64_t process_id;
    /**
     * The event source or the meter.
     */
    dipc_text provider;
    /**
     * The counter or instrument.
     */
    dipc_text name;
    /**
     * The name for people; can be empty.
     */
    dipc_text display_name;
    /**
     * The unit; can be empty.
     */
    dipc_text unit;
    /**
     * The tags, as `route=/a,status=200`; can be empty.
     */
    dipc_text tags;
    /**
     * `mean`, `sum`, `counter`, `up_down_counter`, `gauge`, `histogram` or `exponential_histogram`.
     */
    dipc_text kind;
    /**
     * The mean, the increment, or the value since the start of the process; NaN for histograms.
     */
    double value;
    /**
     * The change for each second; NaN for means, gauges and histograms.
     */
    double rate;
    /**
     * The quantiles 0.5, 0.95 and 0.99 of a histogram.
     */
    double quantiles[3];
} dipc_analysis_counter_row;

/**
 * The objects of one type on the heap.
 */
typedef struct dipc_analysis_heap_type_row {
    /**
     * The id of the process; 0 if the trace does not state it.
     */
    uint64_t process_id;
    /**
     * The name.
     */
    dipc_text name;
    /**
     * The file of the module; a null text if it is not known.
     */
    dipc_text module;
    /**
     * The number of objects.
     */
    uint64_t count;
    /**
     * The bytes of all objects, without what they refer to.
     */
    uint64_t bytes;
    /**
     * The bytes of the largest object.
     */
    uint64_t largest;
    /**
     * Whether the type belongs to the program.
     */
    bool is_own;
} dipc_analysis_heap_type_row;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Creates an analysis, and stores it in `analysis`. `clock` is one of `DIPC_CLOCK_*`: what functions weigh. Pass it the
 * bytes of a trace by `dipc_analysis_feed`, and free it by `dipc_analysis_free`.
 */
dipc_status dipc_analysis_new(struct dipc_analysis **analysis, uint32_t clock);

/**
 * Passes the next `len` bytes of a trace to the analysis, which keeps no pointer to them. They can be cut anywhere.
 *
 * Returns `DIPC_STATUS_WRONG_KIND` after `dipc_analysis_finish`.
 */
dipc_status dipc_analysis_feed(struct dipc_analysis *analysis, const uint8_t *bytes, size_t len);

/**
 * Ends the trace, and stores what was found in `summary`. The functions below return the tables from then on, until
 * `dipc_analysis_free`. A second call stores the same summary.
 */
dipc_status dipc_analysis_finish(struct dipc_analysis *analysis, struct dipc_analysis_summary *summary);

/**
 * Frees an analysis, with all texts of its tables. Null is allowed.
 */
dipc_status dipc_analysis_free(struct dipc_analysis *analysis);

/**
 * Stores function `i` of an order, one of `DIPC_ORDER_*`, in `function`: the hottest one is 0.
 *
 * Frames that only start threads and continue asynchronous methods are one function, `[threads and async]`, as in
 * `dotnet-ipc report`. Returns `DIPC_STATUS_NOT_FOUND` after the last one.
 */
dipc_status dipc_analysis_function(struct dipc_analysis *analysis,
                                   uint32_t order,
                                   size_t i,
                                   struct dipc_analysis_function_row *function);

/**
 * Stores the stacks of the trace in `lines`, each on a line with its weight, the root first, as flame graph tools read
 * them: `main;parse;read 42`. The weight is in the unit of the clock.
 */
dipc_status dipc_analysis_folded(struct dipc_analysis *analysis, dipc_text *lines);

/**
 * Stores the name of the code at an address in `name`: `module!?` or `?!?` if its method is not known. For each address
 * of a `dipc_stack`, this names the stack. `process_id` is 0, or for a trace of several processes that of the
 * event.
 */
dipc_status dipc_analysis_name(struct dipc_analysis *analysis, uint64_t process_id, uint64_t address, dipc_text *name);

/**
 * Stores garbage collection `i` in `collection`; those of a process come in the order of their start.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` after the last one.
 */
dipc_status dipc_analysis_collection(struct dipc_analysis *analysis,
                                     size_t i,
                                     struct dipc_analysis_collection_row *collection);

/**
 * Stores sample `i` of the counters in `counter`, in the order of time.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` after the last one.
 */
dipc_status dipc_analysis_counter(struct dipc_analysis *analysis, size_t i, struct dipc_analysis_counter_row *counter);

/**
 * Stores type `i` of the heap snapshots in `row`: process by process, the type with the most bytes first.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` after the last one.
 */
dipc_status dipc_analysis_heap_type(struct dipc_analysis *analysis, size_t i, struct dipc_analysis_heap_type_row *row);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DOTNET_IPC_ANALYSIS_H */
