/*
 * The C half of the property `c_messages`. Reads messages from the standard input, each after its length, and writes for
 * each a text with everything that the library says about it, after the length of the text. src/lib.rs writes the same
 * text with ipc-proto.
 *
 * Every buffer is memory of exactly its size, so that AddressSanitizer detects an access outside of it.
 */
#include <dotnet_ipc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *out;
static const uint8_t *message;
static size_t message_len;
/* A number for the choices that the message does not make. */
static size_t pick;

/* With sanitizers the optimiser removes no checks, so that the library refers to its panic handler. */
void dotnet_ipc_can_panic(void);
void dotnet_ipc_can_panic(void) {
    fputs("the library panics\n", stderr);
    abort();
}

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    abort();
}

static uint8_t *allocate(size_t size) {
    uint8_t *bytes = (uint8_t *)malloc(size);
    if (bytes == NULL && size != 0)
        fail("no memory");
    return bytes;
}

static void print_hex(const uint8_t *bytes, size_t len) {
    fputc(' ', out);
    for (size_t i = 0; i < len; i++)
        fprintf(out, "%02x", bytes[i]);
}

static void print_text(dipc_text text) {
    size_t len, again;
    if (text.form == DIPC_TEXT_NULL) {
        fputs(" -", out);
        return;
    }
    dipc_text_to_utf16(text, NULL, 0, &len);
    uint16_t *units = (uint16_t *)allocate(len * sizeof *units);
    if (dipc_text_to_utf16(text, units, len, &again) != DIPC_STATUS_OK || again != len)
        fail("the size of a text");
    fputs(" +", out);
    for (size_t i = 0; i < len; i++)
        fprintf(out, "%04x", units[i]);
    free(units);
}

/* Prints the sentence of a status. */
static void print_status(const char *what, dipc_status status, size_t detail) {
    size_t len, again;
    if (status == DIPC_STATUS_OK) {
        fprintf(out, "%s: ok\n", what);
        return;
    }
    if (status == DIPC_STATUS_MORE) {
        fprintf(out, "%s: more, %zu\n", what, detail);
        return;
    }
    dipc_status_text(status, detail, NULL, 0, &len);
    char *sentence = (char *)allocate(len);
    if (dipc_status_text(status, detail, sentence, len, &again) != DIPC_STATUS_OK || again != len - 1)
        fail("the size of a sentence");
    fprintf(out, "%s: %s\n", what, sentence);
    free(sentence);
}

/* Prints the name of the field of an error. */
static void print_field(uint16_t answer_to, dipc_status status, size_t detail) {
    size_t len, again;
    if (status == DIPC_STATUS_OK || status == DIPC_STATUS_MORE)
        return;
    if (dipc_status_field(message, message_len, answer_to, status, detail, NULL, 0, &len) == DIPC_STATUS_NOT_FOUND) {
        fputs("no field\n", out);
        return;
    }
    char *field = (char *)allocate(len);
    if (dipc_status_field(message, message_len, answer_to, status, detail, field, len, &again) != DIPC_STATUS_OK ||
        again != len - 1)
        fail("the size of the name of a field");
    fprintf(out, "field %s\n", field);
    free(field);
}

static void visit(void *context, const dipc_part *part) {
    size_t len;
    if (context != &message || part->bytes != message + part->offset)
        fail("a part is elsewhere");
    dipc_path_text(part->path, NULL, 0, &len);
    char *path = (char *)allocate(len);
    if (dipc_path_text(part->path, path, len, &len) != DIPC_STATUS_OK)
        fail("the size of a path");
    fprintf(out, "part %s %zu %zu %u %" PRIu64, path, part->offset, part->len, (unsigned)part->kind, part->number);
    print_text(part->text);
    print_text(part->name);
    fputc('\n', out);
    free(path);
}

static void inspect(uint16_t answer_to) {
    dipc_part part;
    size_t detail = 0;
    dipc_status status = dipc_inspect(message, message_len, answer_to, visit, &message, &detail);
    print_status("inspect", status, detail);
    print_field(answer_to, status, detail);
    status = dipc_find(message, message_len, answer_to, "reserved", &part, &detail);
    if (status == DIPC_STATUS_OK)
        fprintf(out, "reserved %" PRIu64 "\n", part.number);
}

static void process_info(uint16_t command) {
    dipc_process_info info;
    size_t detail = 0;
    dipc_status status = dipc_read_process_info(message, message_len, command, &info, &detail);
    print_status("process info", status, detail);
    if (status != DIPC_STATUS_OK)
        return;
    fprintf(out, "%u %" PRIu64, (unsigned)info.version, info.process_id);
    print_hex(info.runtime_cookie.bytes, 16);
    print_text(info.command_line);
    print_text(info.os);
    print_text(info.arch);
    print_text(info.managed_entrypoint_assembly_name);
    print_text(info.clr_product_version);
    print_text(info.portable_rid);
    fputc('\n', out);
}

/* Fills the space of a step with the next bytes of the message, and returns their number. */
static size_t receive(dipc_step step, size_t *at) {
    size_t n = message_len - *at;
    if (n > step.len)
        n = step.len;
    if (n > 1 + pick % 13)
        n = 1 + pick % 13;
    if (n > 0)
        memcpy(step.data, message + *at, n);
    *at += n;
    return n;
}

static void serve(void) {
    size_t size = 20 + pick % 300, detail = 0, at = 0;
    uint8_t *receive_buf = allocate(size), *send_buf = allocate(64);
    dipc_exchange exchange;
    dipc_request request;
    dipc_status status;
    dipc_step step;
    if (dipc_serve_init(&exchange, receive_buf, size, send_buf, 64, &detail) != DIPC_STATUS_OK)
        fail("serve");
    while (dipc_exchange_step(&exchange, &step, &detail) == DIPC_STATUS_OK && step.kind == DIPC_STEP_RECEIVE) {
        status = dipc_exchange_advance(&exchange, receive(step, &at), &detail);
        print_status("advance", status, detail);
    }
    status = dipc_serve_finish(&exchange, NULL, &request, &exchange, &detail);
    print_status("serve", status, detail);
    fprintf(out, "code %u of", (unsigned)request.code);
    print_hex(request.bytes, request.len);
    fputs("\nreply", out);
    while (dipc_exchange_step(&exchange, &step, &detail) == DIPC_STATUS_OK && step.kind == DIPC_STEP_SEND) {
        size_t n = step.len > 7 ? 7 : step.len;
        print_hex(step.data, n);
        if (dipc_exchange_advance(&exchange, n, &detail) != DIPC_STATUS_OK)
            fail("a reply");
    }
    fputc('\n', out);
    free(receive_buf);
    free(send_buf);
}

/* The message is the answer to a call, in a buffer that grows as required. */
static void call(void) {
    size_t size = 20 + pick % 200, detail = 0, at = 0, len;
    uint8_t *buf = allocate(size);
    dipc_exchange exchange;
    dipc_answer answer;
    dipc_step step;
    if (dipc_build_GetProcessInfo2(buf, size, &len) != DIPC_STATUS_OK ||
        dipc_call_init(&exchange, buf, size, len, &detail) != DIPC_STATUS_OK)
        fail("a call");
    for (;;) {
        dipc_status status = dipc_exchange_step(&exchange, &step, &detail);
        if (status != DIPC_STATUS_OK || step.kind == DIPC_STEP_DONE)
            break;
        size_t n = step.kind == DIPC_STEP_SEND ? step.len : receive(step, &at);
        status = dipc_exchange_advance(&exchange, n, &detail);
        if (status == DIPC_STATUS_BUFFER_TOO_SMALL) {
            fprintf(out, "grow %zu\n", detail);
            uint8_t *larger = allocate(detail);
            memcpy(larger, buf, size);
            free(buf);
            buf = larger;
            size = detail;
            if (dipc_exchange_set_buffer(&exchange, buf, size, &detail) != DIPC_STATUS_OK)
                fail("a larger buffer");
        } else if (status != DIPC_STATUS_OK) {
            print_status("receive", status, detail);
        }
    }
    dipc_status status = dipc_call_finish(&exchange, &answer, &detail);
    print_status("call", status, detail);
    if (status == DIPC_STATUS_OK) {
        fprintf(out, "refused %d, %" PRIu32, answer.refused, answer.hresult);
        print_hex(answer.bytes, answer.len);
        fputc('\n', out);
    }
    free(buf);
}

/* The message is a stream, whose events are read in batches. */
static void stream(void) {
    size_t room = 1 + pick % 5, count;
    dipc_event_columns columns;
    dipc_parser parser;
    dipc_record record;
    columns.metadata_id = (uint32_t *)allocate(room * sizeof(uint32_t));
    columns.timestamp = (uint64_t *)allocate(room * sizeof(uint64_t));
    columns.thread = (uint64_t *)allocate(room * sizeof(uint64_t));
    columns.stack_id = (uint32_t *)allocate(room * sizeof(uint32_t));
    columns.payload_offset = (size_t *)allocate(room * sizeof(size_t));
    columns.payload_len = (size_t *)allocate(room * sizeof(size_t));
    columns.capture_thread = (uint64_t *)allocate(room * sizeof(uint64_t));
    columns.sequence = (uint32_t *)allocate(room * sizeof(uint32_t));
    columns.processor = (uint32_t *)allocate(room * sizeof(uint32_t));
    columns.label_list = (uint32_t *)allocate(room * sizeof(uint32_t));
    columns.sorted = (bool *)allocate(room * sizeof(bool));
    columns.activity_id = (dipc_guid *)allocate(room * sizeof(dipc_guid));
    columns.related_activity_id = (dipc_guid *)allocate(room * sizeof(dipc_guid));
    columns.stack_offset = (size_t *)allocate(room * sizeof(size_t));
    columns.stack_len = (size_t *)allocate(room * sizeof(size_t));
    dipc_parser_init(&parser);
    do {
        while (dipc_parser_next_events(&parser, message, message_len, &columns, room, &count) == DIPC_STATUS_OK &&
               count > 0)
            for (size_t row = 0; row < count; row++) {
                fprintf(out, "event %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRIu32,
                        columns.metadata_id[row], columns.timestamp[row], columns.thread[row], columns.stack_id[row],
                        columns.capture_thread[row], columns.sequence[row], columns.processor[row]);
                fprintf(out, " %" PRIu32 " %d", columns.label_list[row], columns.sorted[row]);
                print_hex(columns.activity_id[row].bytes, 16);
                print_hex(columns.related_activity_id[row].bytes, 16);
                print_hex(message + columns.payload_offset[row], columns.payload_len[row]);
                print_hex(message + columns.stack_offset[row], columns.stack_len[row]);
                fputc('\n', out);
            }
        if (dipc_parser_next(&parser, message, message_len, &record) != DIPC_STATUS_OK)
            fail("a record");
        if (record.kind == DIPC_RECORD_EVENT)
            fail("an event that is not in a batch");
    } while (record.kind != DIPC_RECORD_MORE && record.kind != DIPC_RECORD_END);
    free(columns.metadata_id);
    free(columns.timestamp);
    free(columns.thread);
    free(columns.stack_id);
    free(columns.payload_offset);
    free(columns.payload_len);
    free(columns.capture_thread);
    free(columns.sequence);
    free(columns.processor);
    free(columns.label_list);
    free(columns.sorted);
    free(columns.activity_id);
    free(columns.related_activity_id);
    free(columns.stack_offset);
    free(columns.stack_len);
}

/* The message is the length of a description, the description, and a payload. */
static void values(uint32_t version) {
    size_t record_len = message_len == 0 ? 0 : message[0], field_count = 0, count = 0, needed = 0, detail = 0;
    dipc_metadata metadata;
    if (record_len + 1 > message_len)
        record_len = message_len == 0 ? 0 : message_len - 1;
    const uint8_t *record = message_len == 0 ? message : message + 1, *payload = record + record_len;
    size_t payload_len = (size_t)(message + message_len - payload);
    if (dipc_metadata_decode_runtime(version, 8, record, record_len, &metadata, NULL) != DIPC_STATUS_OK)
        return;
    dipc_metadata_fields(&metadata, NULL, 0, &field_count);
    dipc_described_field *fields = (dipc_described_field *)allocate(field_count * sizeof *fields);
    if (dipc_metadata_fields(&metadata, fields, field_count, &field_count) != DIPC_STATUS_OK)
        fail("the number of fields");
    if (dipc_fields_values(fields, field_count, payload, payload_len, NULL, 0, &count, &needed) !=
        DIPC_STATUS_BUFFER_TOO_SMALL)
        needed = 0;
    dipc_indexed_value *read = (dipc_indexed_value *)allocate(needed * sizeof *read);
    dipc_status status =
        dipc_fields_values(fields, field_count, payload, payload_len, read, needed, &count, &detail);
    print_status("values", status, detail);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "value %" PRIu32 " %" PRIu32, read[i].field, read[i].kind);
        print_text(fields[read[i].field].name);
        switch (read[i].kind) {
        case DIPC_VALUE_TEXT:
            print_text(read[i].u.text);
            break;
        case DIPC_VALUE_GUID:
        case DIPC_VALUE_DECIMAL:
            print_hex(read[i].u.guid.bytes, 16);
            break;
        case DIPC_VALUE_BYTES:
            print_hex(read[i].u.bytes.data, read[i].u.bytes.len);
            break;
        default:
            fprintf(out, " %" PRIu64, read[i].u.number);
        }
        fputc('\n', out);
    }
    free(fields);
    free(read);
}

static void describe(void) {
    dipc_message parsed;
    dipc_advertise advertise;
    dipc_command_row row;
    uint32_t hresult = 0;
    uint64_t session_id;
    size_t detail = 0, commands = 0;

    dipc_status status = dipc_parse(message, message_len, &parsed, &detail);
    print_status("parse", status, detail);
    if (status == DIPC_STATUS_OK) {
        if (parsed.payload != message + DIPC_HEADER_LEN)
            fail("the payload is elsewhere");
        fprintf(out, "%u %zu %zu\n", (unsigned)parsed.code, parsed.payload_len, parsed.len);
    }
    while (dipc_command_at(commands, &row) == DIPC_STATUS_OK)
        commands++;
    dipc_command_at(pick % commands, &row);
    inspect(0);
    inspect(row.code);
    detail = 0;
    status = dipc_check(message, message_len, &hresult, &detail);
    print_status("check", status, detail);
    print_field(0, status, detail);
    fprintf(out, "%" PRIu32 "\n", hresult);
    process_info(DIPC_COMMAND_GET_PROCESS_INFO);
    process_info(DIPC_COMMAND_GET_PROCESS_INFO2);
    process_info(DIPC_COMMAND_GET_PROCESS_INFO3);
    detail = 0;
    status = dipc_read_SessionId(message, message_len, &session_id, &detail);
    print_status("session", status, detail);
    if (status == DIPC_STATUS_OK)
        fprintf(out, "%" PRIu64 "\n", session_id);
    detail = 0;
    status = dipc_advertise_parse(message, message_len, &advertise, &detail);
    print_status("advertise", status, detail);
    if (status == DIPC_STATUS_OK) {
        fprintf(out, "%" PRIu64 " %u", advertise.process_id, (unsigned)advertise.future);
        print_hex(advertise.runtime_cookie.bytes, 16);
        fputc('\n', out);
    }
    serve();
    call();
    stream();
    values(4);
    values(6);
}

int main(void) {
    uint32_t len;
    while (fread(&len, sizeof len, 1, stdin) == 1) {
        char *text = NULL;
        size_t text_len = 0;
        uint8_t *bytes = allocate(len);
        if (fread(bytes, 1, len, stdin) != len || (out = open_memstream(&text, &text_len)) == NULL)
            fail("no input, or no output");
        message = bytes;
        message_len = len;
        pick = 0;
        for (size_t i = 0; i < len; i++)
            pick += bytes[i];
        describe();
        fclose(out);
        free(bytes);
        len = (uint32_t)text_len;
        if (fwrite(&len, sizeof len, 1, stdout) != 1 || fwrite(text, 1, text_len, stdout) != text_len ||
            fflush(stdout) != 0)
            return 2;
        free(text);
    }
    return 0;
}
