/*
 * A decoder in little memory: prints the parts of the message on standard input, which has up to 512 bytes.
 *
 *     decode <MESSAGE
 */
#include <dotnet_ipc.h>
#include <inttypes.h>
#include <stdio.h>

static uint8_t message[512];

static void print_part(void *context, const dipc_part *part) {
    char path[64], text[128];
    dipc_status status;
    (void)context;
    dipc_path_text(part->path, path, sizeof path, NULL);
    printf("%3zu %3zu  %s: ", part->offset, part->len, path);
    switch (part->kind) {
    case DIPC_PART_TEXT:
        status = dipc_text_to_utf8(part->text, text, sizeof text, NULL);
        printf("\"%s\"%s\n", text, status == DIPC_STATUS_BUFFER_TOO_SMALL ? " (cut off)" : "");
        break;
    case DIPC_PART_NUMBER:
    case DIPC_PART_BOOL:
    case DIPC_PART_HRESULT:
    case DIPC_PART_RESERVED:
        dipc_text_to_utf8(part->name, text, sizeof text, NULL);
        printf("%" PRIu64 "%s%s\n", part->number, text[0] ? " " : "", text);
        break;
    default:
        for (size_t i = 0; i < part->len; i++)
            printf("%02x", part->bytes[i]);
        putchar('\n');
    }
}

int main(void) {
    size_t len = fread(message, 1, sizeof message, stdin), detail;
    dipc_status status = dipc_inspect(message, len, 0, print_part, NULL, &detail);
    if (status != DIPC_STATUS_OK) {
        char reason[160], field[160] = "";
        dipc_status_text(status, detail, reason, sizeof reason, NULL);
        dipc_status_field(message, len, 0, status, detail, field, sizeof field, NULL);
        fprintf(stderr, "decode: %s%s%s\n", field, field[0] ? ": " : "", reason);
        return 1;
    }
    return 0;
}
