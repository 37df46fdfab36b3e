/*
 * Prints the events of a trace for tests/events.py: `events FILE PIECE`, where PIECE is the number of bytes that arrive at
 * once. A line has fields between tabs; texts are UTF-8 in hex.
 */
#include <dotnet_ipc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The descriptions point into records that are kept until the end. */
static struct kept {
    dipc_metadata metadata;
    uint8_t *record;
} *kept;
static size_t kept_len;
/* The first one of those that are valid: a sequence point of version 6 can make the numbers begin anew. */
static size_t kept_from;

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
        putchar('\t');
        for (size_t i = 0; i < 16; i++)
            printf("%02x", value->guid.bytes[i]);
        break;
    default:
        printf("\t%" PRIu64, value->number);
    }
    putchar('\n');
    return true;
}

static void keep(const dipc_trace *trace, const dipc_event *record) {
    dipc_metadata metadata;
    uint8_t *copy = (uint8_t *)malloc(record->payload_len + 1);
    memcpy(copy, record->payload, record->payload_len);
    dipc_status status = dipc_metadata_decode_runtime(trace->version, trace->pointer_size, copy, record->payload_len,
                                                      &metadata, NULL);
    if (status != DIPC_STATUS_OK) {
        free(copy);
        return;
    }
    kept = (struct kept *)realloc(kept, (kept_len + 1) * sizeof *kept);
    kept[kept_len].metadata = metadata;
    kept[kept_len].record = copy;
    kept_len++;
}

static void print_event(const dipc_event *event) {
    const dipc_metadata *metadata = NULL;
    for (size_t i = kept_from; i < kept_len && metadata == NULL; i++)
        if (kept[i].metadata.id == event->metadata_id)
            metadata = &kept[i].metadata;
    printf("event\t%u", (unsigned)event->label_list);
    if (metadata == NULL) {
        puts("");
        return;
    }
    print_text(metadata->provider);
    print_text(metadata->name);
    printf("\t%u\t%u\t%u\t%d\t%" PRIu64 "\n", (unsigned)metadata->event_id, (unsigned)metadata->version,
           (unsigned)metadata->level, (int)metadata->opcode, metadata->keywords);
    dipc_metadata_values(metadata, event->payload, event->payload_len, print_value, NULL, NULL);
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
        if (dipc_parser_next(&parser, window, len, &record) != DIPC_STATUS_OK)
            return 2;
        if (record.kind == DIPC_RECORD_TRACE)
            trace = record.u.trace;
        else if (record.kind == DIPC_RECORD_METADATA)
            keep(&trace, &record.u.event);
        else if (record.kind == DIPC_RECORD_EVENT)
            print_event(&record.u.event);
        else if (record.kind == DIPC_RECORD_SEQUENCE_POINT && (record.u.sequence_point.flags & 2) != 0)
            kept_from = kept_len;
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
