/* Reads the files of testdata: pairs of hex digits, with comments after `#`. */
#ifndef HEX_H
#define HEX_H
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns the bytes, in memory of exactly their number, so that a sanitizer detects a read past the end. */
static uint8_t *read_hex(const char *path, size_t *len) {
    FILE *file = fopen(path, "r");
    size_t capacity = 1 << 17, digits = 0;
    char *text = (char *)malloc(capacity);
    int c, comment = 0;
    if (file == NULL || text == NULL) {
        perror(path);
        exit(2);
    }
    while ((c = fgetc(file)) != EOF) {
        comment = c == '#' || (comment && c != '\n');
        if (!comment && isxdigit(c) && digits < capacity)
            text[digits++] = (char)c;
    }
    fclose(file);
    uint8_t *bytes = (uint8_t *)malloc(digits / 2 + (digits == 0));
    for (size_t i = 0; i < digits / 2; i++) {
        const char pair[3] = {text[2 * i], text[2 * i + 1], 0};
        bytes[i] = (uint8_t)strtol(pair, NULL, 16);
    }
    free(text);
    *len = digits / 2;
    return bytes;
}

#endif
