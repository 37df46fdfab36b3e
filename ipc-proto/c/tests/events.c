/*
 * Prints the events of a trace for tests/events.py: `events FILE PIECE`, where PIECE is the number of bytes that arrive at
 * once. A line has fields between tabs; texts are UTF-8 in hex.
 */
#include <dotnet_ipc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The records that events refer to. They are kept until the end; descriptions and labels point into the copies. */
static struct kept {
    uint32_t kind;
    uint64_t id;
    dipc_metadata metadata;
    dipc_thread_start thread;
    dipc_label_list labels;
    uint8_t *record;
    /* Whether a sequence point, or the end of the thread, has made the number free. */
    bool is_over;
} *kept;
static size_t kept_len;

static void print_text(dipc_text text) {
    size_t len = 0;
    dipc_text_to_utf8(text, NULL, 0, &len);
    char *utf8 = (char *)malloc(len);
    dipc_status status = dipc_text_to_utf8(text, utf8, len, &len);
    printf("\t%s", status == DIPC_STATUS_OK ? "" : "error");
    for (size_t i = 0; i < len; i++)
        printf("%02x", (unsigned char)utf8[i]);
    free(utf8);
}

static void print_hex(const uint8_t *bytes, size_t len) {
    putchar('\t');
    for (size_t i = 0; i < len; i++)
        printf("%02x", bytes[i]);
}

static bool print_value(void *context, const dipc_field_value *value) {
    (void)context;
    printf("value\t%u", (unsigned)value->kind);
    print_text(value->name);
    switch (value->kind) {
    case DIPC_VALUE_INT:
        printf("\t%" PRId64, (int64_t)value->number);
        break;
    case DIPC_VALUE_REAL:
        printf("\t%.17g", value->real);
        break;
    case DIPC_VALUE_TEXT:
        print_text(value->text);
        break;
    case DIPC_VALUE_GUID:
        print_hex(value->guid.bytes, 16);
        break;
    default:
        printf("\t%" PRIu64, value->number);
    }
    putchar('\n');
    return true;
}

static bool count_value(void *context, const dipc_field_value *value) {
    (void)value;
    ++*(size_t *)context;
    return true;
}

/* Returns a new entry with a copy of the bytes. */
static struct kept *keep(uint32_t kind, const uint8_t *bytes, size_t len) {
    kept = (struct kept *)realloc(kept, (kept_len + 1) * sizeof *kept);
    struct kept *entry = &kept[kept_len++];
    memset(entry, 0, sizeof *entry);
    entry->kind = kind;
    /* Memory of exactly this size, so that a read past its end is detected. */
    entry->record = (uint8_t *)malloc(len + (len == 0));
    if (len > 0)
        memcpy(entry->record, bytes, len);
    return entry;
}

static void keep_record(const dipc_trace *trace, const dipc_record *record) {
    struct kept *entry;
    if (record->kind == DIPC_RECORD_METADATA) {
        const dipc_event *event = &record->u.event;
        entry = keep(record->kind, event->payload, event->payload_len);
        entry->is_over = dipc_metadata_decode_runtime(trace->version, trace->pointer_size, entry->record,
                                                      event->payload_len, &entry->metadata, NULL) != DIPC_STATUS_OK;
        entry->id = entry->metadata.id;
    } else if (record->kind == DIPC_RECORD_THREAD) {
        const dipc_thread_start *thread = &record->u.thread_start;
        entry = keep(record->kind, (const uint8_t *)thread->name.data, thread->name.len);
        entry->id = thread->thread;
        entry->thread = *thread;
        entry->thread.name.data = entry->record;
    } else if (record->kind == DIPC_RECORD_LABEL_LIST) {
        entry = keep(record->kind, record->u.label_list.bytes, record->u.label_list.len);
        entry->id = record->u.label_list.id;
        entry->labels = record->u.label_list;
        entry->labels.bytes = entry->record;
    }
}

/* The last one counts. */
static struct kept *find(uint32_t kind, uint64_t id) {
    for (size_t i = kept_len; i-- > 0;)
        if (kept[i].kind == kind && kept[i].id == id && !kept[i].is_over)
            return &kept[i];
    return NULL;
}

static void pass(const dipc_sequence_point *point) {
    for (size_t i = 0; i < kept_len; i++)
        if (kept[i].kind == DIPC_RECORD_LABEL_LIST || (kept[i].kind == DIPC_RECORD_THREAD && (point->flags & 1) != 0) ||
            (kept[i].kind == DIPC_RECORD_METADATA && (point->flags & 2) != 0))
            kept[i].is_over = true;
}

/* What labels can replace. */
struct properties {
    dipc_guid activity_id, related_activity_id;
    bool has_activity_id, has_related_activity_id;
    uint32_t version, level;
    int32_t opcode;
    uint64_t keywords;
};

static void apply_label(void *context, const dipc_label *label) {
    struct properties *properties = (struct properties *)context;
    switch (label->kind) {
    case DIPC_LABEL_ACTIVITY_ID:
        if (!properties->has_activity_id)
            properties->activity_id = label->guid;
        properties->has_activity_id = true;
        break;
    case DIPC_LABEL_RELATED_ACTIVITY_ID:
        if (!properties->has_related_activity_id)
            properties->related_activity_id = label->guid;
        properties->has_related_activity_id = true;
        break;
    case DIPC_LABEL_OPCODE:
        properties->opcode = (int32_t)label->number;
        break;
    case DIPC_LABEL_KEYWORDS:
        properties->keywords = label->number;
        break;
    case DIPC_LABEL_LEVEL:
        properties->level = (uint32_t)label->number;
        break;
    case DIPC_LABEL_VERSION:
        properties->version = (uint32_t)label->number;
        break;
    }
}

static void print_label(void *context, const dipc_label *label) {
    (void)context;
    if (label->kind < DIPC_LABEL_TRACE_ID || label->kind > DIPC_LABEL_NUMBER)
        return;
    printf("label\t%u", (unsigned)label->kind);
    print_text(label->name);
    printf("\t%" PRId64, (int64_t)label->number);
    print_text(label->text);
    print_hex(label->guid.bytes, 16);
    putchar('\n');
}

/* Prints the values of a payload, read by the indexes of their fields, and checks that a visitor sees as many. */
static void print_values(const dipc_metadata *metadata, const uint8_t *payload, size_t len) {
    size_t field_count = 0, count = 0, needed = 0, visited = 0;
    dipc_metadata_fields(metadata, NULL, 0, &field_count);
    dipc_described_field *fields = (dipc_described_field *)malloc((field_count + 1) * sizeof *fields);
    if (dipc_metadata_fields(metadata, fields, field_count, &field_count) != DIPC_STATUS_OK)
        printf("fail\tfields\n");
    dipc_status status = dipc_fields_values(fields, field_count, payload, len, NULL, 0, &count, &needed);
    if (status != DIPC_STATUS_BUFFER_TOO_SMALL)
        needed = 0;
    dipc_indexed_value *values = (dipc_indexed_value *)malloc((needed + 1) * sizeof *values);
    status = dipc_fields_values(fields, field_count, payload, len, values, needed, &count, NULL);
    for (size_t i = 0; i < count; i++) {
        dipc_field_value value;
        memset(&value, 0, sizeof value);
        value.kind = values[i].kind;
        value.name = fields[values[i].field].name;
        if (value.kind == DIPC_VALUE_TEXT)
            value.text = values[i].u.text;
        else if (value.kind == DIPC_VALUE_GUID || value.kind == DIPC_VALUE_DECIMAL)
            value.guid = values[i].u.guid;
        else if (value.kind == DIPC_VALUE_REAL)
            value.real = values[i].u.real;
        else if (value.kind != DIPC_VALUE_BYTES)
            value.number = values[i].u.number;
        print_value(NULL, &value);
    }
    if (dipc_metadata_values(metadata, payload, len, count_value, &visited, NULL) != status || visited != count)
        printf("fail\t%u values by index, %u by a visitor\n", (unsigned)count, (unsigned)visited);
    free(fields);
    free(values);
}

static void print_event(const dipc_trace *trace, const dipc_event *event) {
    struct kept *described = find(DIPC_RECORD_METADATA, event->metadata_id);
    struct kept *thread = find(DIPC_RECORD_THREAD, event->thread);
    struct kept *labels = find(DIPC_RECORD_LABEL_LIST, event->label_list);
    struct properties properties;
    uint64_t thread_id = trace->version < 6 ? event->thread : UINT64_MAX;
    if (thread != NULL)
        thread_id = thread->thread.thread_id;
    if (described == NULL) {
        puts("event");
        return;
    }
    const dipc_metadata *metadata = &described->metadata;
    memset(&properties, 0, sizeof properties);
    properties.activity_id = event->activity_id;
    properties.related_activity_id = event->related_activity_id;
    properties.version = metadata->version;
    properties.level = metadata->level;
    properties.opcode = metadata->opcode;
    properties.keywords = metadata->keywords;
    if (labels != NULL && dipc_labels(labels->labels.bytes, labels->labels.len, apply_label, &properties, NULL) != 0)
        printf("fail\tlabels\n");
    printf("event");
    print_text(metadata->provider);
    print_text(metadata->name);
    print_hex(properties.activity_id.bytes, 16);
    print_hex(properties.related_activity_id.bytes, 16);
    print_text(thread != NULL ? thread->thread.name : dipc_utf8(NULL));
    printf("\t%" PRIu64, thread_id);
    printf("\t%u\t%u\t%u\t%d\t%" PRIu64 "\n", (unsigned)metadata->event_id, (unsigned)properties.version,
           (unsigned)properties.level, (int)properties.opcode, properties.keywords);
    if (labels != NULL)
        dipc_labels(labels->labels.bytes, labels->labels.len, print_label, NULL, NULL);
    print_values(metadata, event->payload, event->payload_len);
}

enum { ROWS = 5 };

/* Each event of a batch has a row in each of these arrays. */
static uint32_t metadata_ids[ROWS], sequences[ROWS], processors[ROWS], stack_ids[ROWS], label_lists[ROWS];
static uint64_t timestamps[ROWS], threads[ROWS], capture_threads[ROWS];
static size_t payload_offsets[ROWS], payload_lens[ROWS], stack_offsets[ROWS], stack_lens[ROWS];
static dipc_guid activity_ids[ROWS], related_activity_ids[ROWS];
static bool sorted[ROWS];
static const dipc_event_columns columns = {metadata_ids,   timestamps,    threads,         stack_ids,
                                           payload_offsets, payload_lens, capture_threads, sequences,
                                           processors,     label_lists,   sorted,          activity_ids,
                                           related_activity_ids, stack_offsets, stack_lens};

/* Prints the next events of the window, and returns whether there were any. */
static bool print_events(dipc_parser *parser, const dipc_trace *trace, const uint8_t *window, size_t len) {
    size_t count = 0;
    if (dipc_parser_next_events(parser, window, len, &columns, ROWS, &count) != DIPC_STATUS_OK)
        printf("fail\tevents\n");
    for (size_t row = 0; row < count; row++) {
        dipc_event event;
        memset(&event, 0, sizeof event);
        event.metadata_id = metadata_ids[row];
        event.thread = threads[row];
        event.activity_id = activity_ids[row];
        event.related_activity_id = related_activity_ids[row];
        event.label_list = label_lists[row];
        event.payload = window + payload_offsets[row];
        event.payload_len = payload_lens[row];
        print_event(trace, &event);
    }
    return count > 0;
}

int main(int argc, char **argv) {
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    size_t piece = argc == 3 ? (size_t)strtoul(argv[2], NULL, 10) : 0, len = 0, size = 0;
    uint8_t *window = NULL;
    dipc_parser parser;
    dipc_record record;
    dipc_trace trace;
    dipc_end end;
    memset(&trace, 0, sizeof trace);
    if (file == NULL || piece == 0 || sizeof parser != dipc_parser_size())
        return 2;
    dipc_parser_init(&parser);
    for (;;) {
        if (print_events(&parser, &trace, window, len))
            continue;
        if (dipc_parser_next(&parser, window, len, &record) != DIPC_STATUS_OK)
            return 2;
        if (record.kind == DIPC_RECORD_TRACE)
            trace = record.u.trace;
        else if (record.kind == DIPC_RECORD_METADATA || record.kind == DIPC_RECORD_THREAD ||
                 record.kind == DIPC_RECORD_LABEL_LIST)
            keep_record(&trace, &record);
        else if (record.kind == DIPC_RECORD_EVENT)
            printf("fail\tan event that was not in a batch\n");
        else if (record.kind == DIPC_RECORD_SEQUENCE_POINT)
            pass(&record.u.sequence_point);
        else if (record.kind == DIPC_RECORD_REMOVE_THREAD) {
            struct kept *thread = find(DIPC_RECORD_THREAD, record.u.thread.thread);
            if (thread != NULL)
                thread->is_over = true;
        }
        else if (record.kind == DIPC_RECORD_END)
            break;
        else if (record.kind == DIPC_RECORD_MORE) {
            size_t used = dipc_parser_release(&parser);
            /* Memory of exactly the size of the window, so that a read past its end is detected. */
            uint8_t *next = (uint8_t *)malloc(len - used + piece);
            if (len > used)
                memcpy(next, window + used, len - used);
            free(window);
            window = next;
            len -= used;
            size_t n = fread(window + len, 1, piece, file);
            len += n;
            size = len;
            if (n == 0)
                break;
        }
    }
    dipc_parser_finish(&parser, window, size, &end);
    printf("end\t%u\n", (unsigned)end.kind);
    for (size_t i = 0; i < kept_len; i++)
        free(kept[i].record);
    free(kept);
    free(window);
    fclose(file);
    return 0;
}
