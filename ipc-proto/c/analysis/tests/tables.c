/* Prints all tables of a trace that is passed in pieces: tables FILE PIECE CLOCK. tables.py compares them with the tool's. */
#include <dotnet_ipc_analysis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT(text) (int)(text).len, (const char *)(text).data
/* Runs a call that must succeed. */
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        dipc_status status_ = (call);                                                                                  \
        if (status_ != DIPC_STATUS_OK) {                                                                               \
            fprintf(stderr, "%s is %d\n", #call, (int)status_);                                                        \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Prints the names of the addresses of all stacks, by the bytes of the trace. */
static void names(dipc_analysis *analysis, const uint8_t *bytes, size_t len) {
    dipc_parser parser;
    dipc_record record;
    dipc_text name;
    MUST(dipc_parser_init(&parser));
    do {
        MUST(dipc_parser_next(&parser, bytes, len, &record));
        for (size_t i = 0; record.kind == DIPC_RECORD_STACK && i + 8 <= record.u.stack.len; i += 8) {
            uint64_t address = 0;
            for (size_t byte = 8; byte-- > 0;)
                address = address << 8 | record.u.stack.bytes[i + byte];
            MUST(dipc_analysis_name(analysis, 0, address, &name));
            printf("name\t%.*s\n", TEXT(name));
        }
    } while (record.kind != DIPC_RECORD_MORE && record.kind != DIPC_RECORD_END);
}

int main(int argc, char **argv) {
    dipc_analysis *analysis;
    dipc_analysis_summary found, again;
    dipc_text lines;
    FILE *file = argc == 4 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL)
        return 2;
    fseek(file, 0, SEEK_END);
    size_t len = (size_t)ftell(file), piece = (size_t)atol(argv[2]);
    rewind(file);
    uint8_t *bytes = (uint8_t *)malloc(len + 1);
    if (bytes == NULL || fread(bytes, 1, len, file) != len)
        return 2;
    fclose(file);

    MUST(dipc_analysis_new(&analysis, (uint32_t)atoi(argv[3])));
    for (size_t at = 0; at < len; at += piece)
        MUST(dipc_analysis_feed(analysis, bytes + at, len - at < piece ? len - at : piece));
    MUST(dipc_analysis_finish(analysis, &found));
    MUST(dipc_analysis_finish(analysis, &again));
    printf("summary\t%u\t%" PRIu64 "\t%" PRIu64 "\t%u\t%" PRIu64 "\t%" PRIu64 "\t%.17g\n", found.end.kind, found.events,
           found.lost, found.clock, found.counted, found.total, found.unnamed);
    dipc_analysis_function_row function;
    for (uint32_t order = DIPC_ORDER_EXCLUSIVE; order <= DIPC_ORDER_OWN; order++)
        for (size_t i = 0; dipc_analysis_function(analysis, order, i, &function) == DIPC_STATUS_OK; i++)
            printf("function%u\t%.*s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%d\n", order, TEXT(function.name),
                   function.exclusive, function.inclusive, function.own, function.is_own);
    dipc_analysis_collection_row gc;
    for (size_t i = 0; i < found.collections; i++) {
        MUST(dipc_analysis_collection(analysis, i, &gc));
        printf("collection\t%" PRIu64 "\t%u\t%u\t%.*s\t%.*s\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64
               "\t%d\t%" PRIu64 "\t%" PRIu64 "\n",
               gc.process_id, gc.number, gc.generation, TEXT(gc.kind), TEXT(gc.reason), gc.start, gc.pause_start, gc.pause,
               gc.suspension, gc.duration, gc.is_complete, gc.after[1], gc.after[3]);
    }
    dipc_analysis_counter_row counter;
    for (size_t i = 0; i < found.counters; i++) {
        MUST(dipc_analysis_counter(analysis, i, &counter));
        printf("counter\t%" PRIu64 "\t%.*s\t%.*s\t%.*s\t%.*s\t%.*s\t%.17g\t%.17g\t%.17g\n", counter.process_id,
               TEXT(counter.provider), TEXT(counter.name), TEXT(counter.unit), TEXT(counter.kind), TEXT(counter.tags),
               counter.value, counter.rate, counter.quantiles[1]);
    }
    dipc_analysis_heap_type_row type;
    for (size_t i = 0; i < found.heap_types; i++) {
        MUST(dipc_analysis_heap_type(analysis, i, &type));
        printf("type\t%" PRIu64 "\t%.*s\t%.*s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%d\n", type.process_id,
               TEXT(type.name), TEXT(type.module), type.count, type.bytes, type.largest, type.is_own);
    }
    names(analysis, bytes, len);
    MUST(dipc_analysis_folded(analysis, &lines));
    printf("folded\n%.*s", TEXT(lines));
    MUST(dipc_analysis_free(analysis));
    free(bytes);
    return found.end.kind != again.end.kind;
}
