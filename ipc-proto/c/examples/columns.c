/*
 * Adds up the numbers in the events of a trace, for each field of each kind of event:
 *
 *   columns FILE
 *
 * Events are read in batches of columns, and values by the indexes of their fields. The name of a field is made text once.
 */
#include <dotnet_ipc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1024, VALUES = 4096, KINDS = 4096 };

/* A kind of event. */
struct kind {
    char *name;
    uint64_t events;
    dipc_described_field *fields;
    size_t field_count;
    char **names;
    uint64_t *sums;
};

/* Most numbers of descriptions count up from 1, so they are the indexes of kinds. */
static struct kind kinds[KINDS];

static void *allocate(size_t size) {
    void *memory = calloc(1, size + 1);
    if (memory == NULL)
        exit(1);
    return memory;
}

static char *string(dipc_text text) {
    size_t size = 0;
    dipc_text_to_utf8(text, NULL, 0, &size);
    char *string = (char *)allocate(size);
    dipc_text_to_utf8(text, string, size, NULL);
    return string;
}

/* Stores a description, with what later events need of it. */
static void describe(const dipc_trace *trace, const dipc_event *record) {
    dipc_metadata metadata;
    if (dipc_metadata_decode_runtime(trace->version, trace->pointer_size, record->payload, record->payload_len,
                                     &metadata, NULL) != DIPC_STATUS_OK ||
        metadata.id >= KINDS || kinds[metadata.id].name != NULL)
        return;
    struct kind *kind = &kinds[metadata.id];
    kind->name = string(metadata.name);
    dipc_metadata_fields(&metadata, NULL, 0, &kind->field_count);
    kind->fields = (dipc_described_field *)allocate(kind->field_count * sizeof *kind->fields);
    kind->names = (char **)allocate(kind->field_count * sizeof *kind->names);
    kind->sums = (uint64_t *)allocate(kind->field_count * sizeof *kind->sums);
    dipc_metadata_fields(&metadata, kind->fields, kind->field_count, &kind->field_count);
    for (size_t i = 0; i < kind->field_count; i++)
        kind->names[i] = string(kind->fields[i].name);
}

/* Adds the numbers of a payload to the sums of its kind. */
static void add(uint32_t metadata_id, const uint8_t *payload, size_t len) {
    static dipc_indexed_value values[VALUES];
    size_t count = 0;
    if (metadata_id >= KINDS || kinds[metadata_id].name == NULL)
        return;
    struct kind *kind = &kinds[metadata_id];
    kind->events++;
    /* The values before an error are valid, and so are the first ones of a very long payload. */
    dipc_fields_values(kind->fields, kind->field_count, payload, len, values, VALUES, &count, NULL);
    for (size_t i = 0; i < count; i++)
        if (values[i].kind == DIPC_VALUE_INT || values[i].kind == DIPC_VALUE_UINT)
            kind->sums[values[i].field] += values[i].u.number;
}

int main(int argc, char **argv) {
    static uint32_t metadata_ids[BATCH];
    static size_t offsets[BATCH], lengths[BATCH];
    dipc_event_columns columns;
    dipc_parser parser;
    dipc_record record;
    dipc_trace trace;
    size_t count;
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: columns FILE\n");
        return 2;
    }
    fseek(file, 0, SEEK_END);
    size_t len = (size_t)ftell(file);
    rewind(file);
    uint8_t *window = (uint8_t *)allocate(len);
    len = fread(window, 1, len, file);
    fclose(file);

    memset(&trace, 0, sizeof trace);
    memset(&columns, 0, sizeof columns);
    columns.metadata_id = metadata_ids;
    columns.payload_offset = offsets;
    columns.payload_len = lengths;
    dipc_parser_init(&parser);
    do {
        while (dipc_parser_next_events(&parser, window, len, &columns, BATCH, &count) == DIPC_STATUS_OK && count > 0)
            for (size_t row = 0; row < count; row++)
                add(metadata_ids[row], window + offsets[row], lengths[row]);
        dipc_parser_next(&parser, window, len, &record);
        if (record.kind == DIPC_RECORD_TRACE)
            trace = record.u.trace;
        else if (record.kind == DIPC_RECORD_METADATA)
            describe(&trace, &record.u.event);
    } while (record.kind != DIPC_RECORD_MORE && record.kind != DIPC_RECORD_END);

    for (size_t i = 0; i < KINDS; i++) {
        struct kind *kind = &kinds[i];
        if (kind->events > 0)
            printf("%s: %" PRIu64 " events\n", kind->name, kind->events);
        for (size_t field = 0; field < kind->field_count; field++) {
            if (kind->sums[field] > 0)
                printf("  %s: %" PRIu64 "\n", kind->names[field], kind->sums[field]);
            free(kind->names[field]);
        }
        free(kind->name);
        free(kind->fields);
        free(kind->names);
        free(kind->sums);
    }
    free(window);
    return 0;
}
