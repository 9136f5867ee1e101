/* A file of a recording, as bhemu/recording/parts.py reads it: frames, each written whole. */

#ifndef BHEMU_PARTS_H
#define BHEMU_PARTS_H

#include <stddef.h>

/* Bytes that grow. `lacks`: there was no memory for some. */
struct bytes {
    char *at;
    size_t size, room;
    int lacks;
};

/* Append. */
void append(struct bytes *to, const void *from, size_t size);
void append_text(struct bytes *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Append a string of JSON. Bytes that are not UTF-8 are written as Python has them in names of files. */
void append_string(struct bytes *to, const char *text);

/* An array of a frame: of 8-byte integers, or of bytes. */
struct array {
    const char *name;
    const void *at;
    size_t size; /* in bytes */
    int is_numbers;
};

/* What compresses frames is there: zlib, which the client may have loaded, or the system has. */
int parts_can_be_written(void);

/* Make a file; its number, or -1 with errno. */
int parts_open(const char *path);

/* Write a frame: a description, JSON without the brace that ends it, and arrays; 0, or -1 with errno. */
int parts_frame(int file, const struct bytes *description, const struct array *arrays, int count);

#endif
