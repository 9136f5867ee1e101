/* A file of a recording (parts.h). */

#define _GNU_SOURCE
#include "parts.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAST = 1 /* level of zlib */, LEAST_ROOM = 4096 };

static unsigned long (*check_sum)(unsigned long, const unsigned char *, unsigned);
static unsigned long (*bound)(unsigned long);
static int (*compress_bytes)(unsigned char *, unsigned long *, const unsigned char *, unsigned long, int);

void append(struct bytes *to, const void *from, size_t size)
{
    if (!size) /* then `from` may be NULL, which memcpy must not get */
        return;
    if (to->size + size > to->room) {
        size_t room = 2 * (to->size + size) + LEAST_ROOM;
        char *at = realloc(to->at, room);
        if (!at) {
            to->lacks = 1;
            return;
        }
        to->at = at;
        to->room = room;
    }
    memcpy(to->at + to->size, from, size);
    to->size += size;
}

void append_text(struct bytes *to, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    int size = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    append(to, text, size < (int)sizeof text ? size : (int)sizeof text - 1);
}

/* Bytes of the character of UTF-8 that a text begins with; 0: it begins with none. */
static int utf8_size(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int size = *text < 0x80 ? 1 : *text >> 5 == 6 ? 2 : *text >> 4 == 14 ? 3 : *text >> 3 == 30 ? 4 : 0;
    uint32_t code = size < 2 ? *text : *text & (0x7F >> size);
    for (int i = 1; i < size; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        code = code << 6 | (text[i] & 0x3F);
    }
    return size && code >= least[size] && code < 0x110000 && code >> 11 != 0x1B ? size : 0;
}

void append_string(struct bytes *to, const char *text)
{
    append(to, "\"", 1);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int size = utf8_size(at);
        if (!size)
            append_text(to, "\\udc%02x", *at);
        else if (*at < ' ' || *at == '"' || *at == '\\')
            append_text(to, "\\u%04x", *at);
        else
            append(to, at, size);
        at += size ? size : 1;
    }
    append(to, "\"", 1);
}

int parts_can_be_written(void)
{
    void *zlib = check_sum ? NULL : dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    if (zlib) {
        check_sum = (unsigned long (*)(unsigned long, const unsigned char *, unsigned))dlsym(zlib, "crc32");
        bound = (unsigned long (*)(unsigned long))dlsym(zlib, "compressBound");
        compress_bytes = (int (*)(unsigned char *, unsigned long *, const unsigned char *, unsigned long, int))dlsym(
            zlib, "compress2");
    }
    return check_sum && bound && compress_bytes;
}

/* Make the directories that a path names before its last name. */
static int make_directories(const char *path)
{
    char made[4096];
    size_t size = strlen(path);
    if (size >= sizeof made) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (size_t i = 1; i < size; i++)
        if (path[i] == '/') {
            memcpy(made, path, i);
            made[i] = 0;
            if (mkdir(made, 0777) && errno != EEXIST && errno != EISDIR)
                return -1;
        }
    return 0;
}

int parts_open(const char *path)
{
    return make_directories(path) ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int write_whole(int file, const struct bytes *bytes)
{
    for (size_t done = 0; done < bytes->size;) {
        ssize_t size = write(file, bytes->at + done, bytes->size - done);
        if (size < 0 && errno != EINTR)
            return -1;
        done += size < 0 ? 0 : size;
    }
    return 0;
}

int parts_frame(int file, const struct bytes *description, const struct array *arrays, int count)
{
    struct bytes text = {0}, content = {0}, frame = {0};
    append(&text, description->at, description->size);
    append_text(&text, ", \"coded\": {}, \"arrays\": {");
    for (int i = 0; i < count; i++) {
        const struct array *array = arrays + i;
        append_text(&text, "%s\"%s\": [\"%s\", [%zu]]", i ? ", " : "", array->name, array->is_numbers ? "<i8" : "|u1",
                    array->is_numbers ? array->size / sizeof(int64_t) : array->size);
        append(&content, array->at, array->size);
    }
    append_text(&text, "}}");
    unsigned long packed_size = bound(content.size); /* one array after the other */
    unsigned char *packed = malloc(packed_size);
    int status = -1;
    errno = ENOMEM;
    if (packed && !compress_bytes(packed, &packed_size, (const unsigned char *)content.at, content.size, FAST)) {
        unsigned long sum = check_sum(check_sum(0, (const unsigned char *)text.at, text.size), packed, packed_size);
        uint32_t head[3] = {text.size, packed_size, sum};
        append(&frame, "BHR2", 4);
        append(&frame, head, sizeof head);
        append(&frame, text.at, text.size);
        append(&frame, packed, packed_size);
        status = description->lacks || text.lacks || content.lacks || frame.lacks ? -1 : write_whole(file, &frame);
    }
    int error = errno;
    free(packed);
    free(text.at);
    free(content.at);
    free(frame.at);
    errno = error;
    return status;
}
