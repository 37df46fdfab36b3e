/*
 * Prints what the library says about messages, for tests/messages.py: `messages FILE ANSWER_TO ...`, where ANSWER_TO is the
 * name of the command that an answer belongs to, or `-`. A line has fields between tabs.
 */
#include "hex.h"
#include <dotnet_ipc.h>
#include <inttypes.h>
#include <string.h>

static const uint8_t *message;
static size_t message_len;
static uint16_t answer_to;

static void fail(const char *what) {
    printf("fail\t%s\n", what);
}

static void print_hex(const uint8_t *bytes, size_t len) {
    putchar('\t');
    for (size_t i = 0; i < len; i++)
        printf("%02x", bytes[i]);
}

/* Prints a text as UTF-8 in hex, after `-` for null and `+` otherwise. Sizes must be exact, and UTF-16 be the same text. */
static void print_text(dipc_text text) {
    size_t len, units, again;
    if (dipc_text_to_utf8(text, NULL, 0, &len) != DIPC_STATUS_BUFFER_TOO_SMALL || len == 0)
        fail("the size of UTF-8");
    char *utf8 = (char *)malloc(len);
    if (dipc_text_to_utf8(text, utf8, len, &again) != DIPC_STATUS_OK || again != len - 1 || utf8[again] != 0)
        fail("UTF-8");
    dipc_text_to_utf16(text, NULL, 0, &units);
    uint16_t *utf16 = (uint16_t *)malloc(units * sizeof *utf16 + 1);
    if (dipc_text_to_utf16(text, utf16, units, &again) != DIPC_STATUS_OK || again != units)
        fail("UTF-16");
    dipc_text copy = {utf16, units, DIPC_TEXT_UTF16};
    if (text.form != DIPC_TEXT_NULL && !dipc_text_equals(text, copy))
        fail("UTF-16 is another text");
    printf("\t%c", text.form == DIPC_TEXT_NULL ? '-' : '+');
    for (size_t i = 0; i + 1 < len; i++)
        printf("%02x", (unsigned char)utf8[i]);
    free(utf8);
    free(utf16);
}

static void print_status(const char *what, dipc_status status, size_t detail) {
    char sentence[160];
    if (dipc_status_text(status, detail, sentence, sizeof sentence, NULL) != DIPC_STATUS_OK)
        fail("a sentence");
    printf("%s\t%d\t%zu\t%s\n", what, (int)status, detail, sentence);
}

/* Prints the name of the field of an error. */
static void print_field(dipc_status status, size_t detail) {
    size_t len, again;
    dipc_status found = dipc_status_field(message, message_len, answer_to, status, detail, NULL, 0, &len);
    if (found == DIPC_STATUS_NOT_FOUND)
        return;
    char *field = (char *)malloc(len);
    if (dipc_status_field(message, message_len, answer_to, status, detail, field, len, &again) != DIPC_STATUS_OK ||
        again != len - 1)
        fail("the size of the name of a field");
    printf("field\t%s\n", field);
    free(field);
}

static void visit(void *context, const dipc_part *part) {
    size_t *end = (size_t *)context, len, again;
    dipc_part found;
    if (part->offset != *end || part->bytes != message + part->offset)
        fail("a gap between parts");
    *end = part->offset + part->len;
    dipc_path_text(part->path, NULL, 0, &len);
    char *path = (char *)malloc(len);
    if (dipc_path_text(part->path, path, len, &again) != DIPC_STATUS_OK || again != len - 1)
        fail("the size of a path");
    dipc_status status = dipc_find(message, message_len, answer_to, path, &found, NULL);
    if (status == DIPC_STATUS_NOT_FOUND || (status == DIPC_STATUS_OK && found.offset != part->offset))
        fail("a part is not found");
    printf("part\t%s\t%zu\t%zu\t%u\t%" PRIu64, path, part->offset, part->len, part->kind, part->number);
    print_hex(part->bytes, part->len);
    print_text(part->text);
    print_text(part->name);
    putchar('\n');
    free(path);
}

/* The struct of an answer has the same values as its parts. */
static void compare_text(const char *path, dipc_text text) {
    dipc_part part;
    dipc_status status = dipc_find(message, message_len, answer_to, path, &part, NULL);
    dipc_text expected = status == DIPC_STATUS_OK ? part.text : dipc_utf8(NULL);
    if (!dipc_text_equals(text, expected))
        fail(path);
}

static void compare_process_info(void) {
    dipc_process_info info;
    dipc_part part;
    if (dipc_read_process_info(message, message_len, answer_to, &info, NULL) != DIPC_STATUS_OK)
        fail("an answer is not read");
    if (dipc_find(message, message_len, answer_to, "version", &part, NULL) != DIPC_STATUS_OK)
        part.number = 0;
    if (info.version != part.number)
        fail("version");
    dipc_find(message, message_len, answer_to, "process_id", &part, NULL);
    if (info.process_id != part.number)
        fail("process_id");
    dipc_find(message, message_len, answer_to, "runtime_cookie", &part, NULL);
    if (memcmp(info.runtime_cookie.bytes, part.bytes, 16) != 0)
        fail("runtime_cookie");
    compare_text("command_line", info.command_line);
    compare_text("os", info.os);
    compare_text("arch", info.arch);
    compare_text("managed_entrypoint_assembly_name", info.managed_entrypoint_assembly_name);
    compare_text("clr_product_version", info.clr_product_version);
    compare_text("portable_rid", info.portable_rid);
}

/* Returns the code of a command, or 0. */
static uint16_t code(const char *name) {
    dipc_command_row row;
    for (size_t i = 0; dipc_command_at(i, &row) == DIPC_STATUS_OK; i++)
        if (dipc_text_equals(row.name, dipc_utf8(name)))
            return row.code;
    return 0;
}

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        size_t detail = 0, end = 0;
        dipc_message parsed;
        uint32_t hresult = 0;
        uint8_t *bytes = read_hex(argv[i], &message_len);
        message = bytes;
        answer_to = code(argv[i + 1]);
        printf("file\t%s\n", argv[i]);
        dipc_status status = dipc_parse(message, message_len, &parsed, &detail);
        print_status("parse", status, detail);
        if (status == DIPC_STATUS_OK && (parsed.payload != message + DIPC_HEADER_LEN || parsed.len > message_len))
            fail("the payload is elsewhere");
        status = dipc_inspect(message, message_len, answer_to, visit, &end, &detail);
        print_status("inspect", status, detail);
        print_field(status, detail);
        bool describes = answer_to == DIPC_COMMAND_GET_PROCESS_INFO || answer_to == DIPC_COMMAND_GET_PROCESS_INFO2 ||
                         answer_to == DIPC_COMMAND_GET_PROCESS_INFO3;
        if (describes && parsed.code == DIPC_CODE_OK)
            compare_process_info();
        status = dipc_check(message, message_len, &hresult, &detail);
        print_status("check", status, detail);
        if (status == DIPC_STATUS_VIOLATION)
            print_field(status, detail);
        printf("hresult\t%" PRIu32, hresult);
        print_text(dipc_hresult_name(hresult));
        putchar('\n');
        free(bytes);
    }
    return 0;
}
