/* SPDX-License-Identifier: MIT
 * Streaming decode: pieces in, whole characters out. */
#include <string.h>

#include <tfm/tokenizer.h>

#include "lib/llm/utf8.h"

/* Length of the beginning of a character that ends text[0, size) too early; 0 if there is none. */
static size_t incomplete_tail(const unsigned char *text, size_t size)
{
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        unsigned char c = text[size - back];
        if (c >= 0xc0)
            return tfm__utf8_scan(text + size - back, back) < 0 ? back : 0;
        if (c < 0x80)
            return 0;
    }
    return 0;
}

void tfm_stream_put(struct tfm_stream *stream, const char *piece, size_t size,
                    void (*write)(void *context, const char *data, size_t size), void *context)
{
    size_t at = 0, tail;

    while (stream->n_held > 0 && at < size) {
        int length;
        stream->held[stream->n_held++] = (unsigned char)piece[at];
        length = tfm__utf8_scan(stream->held, stream->n_held);
        if (length < 0) {
            at++;
        } else if (length > 0) {
            at++;
            write(context, (const char *)stream->held, stream->n_held);
            stream->n_held = 0;
        } else { /* the bytes before this one stay incomplete for ever */
            write(context, (const char *)stream->held, stream->n_held - 1);
            stream->n_held = 0;
        }
    }
    tail = incomplete_tail((const unsigned char *)piece + at, size - at);
    if (size - at > tail)
        write(context, piece + at, size - at - tail);
    if (tail > 0) {
        memcpy(stream->held, piece + size - tail, tail);
        stream->n_held = tail;
    }
}

void tfm_stream_flush(struct tfm_stream *stream,
                      void (*write)(void *context, const char *data, size_t size), void *context)
{
    if (stream->n_held > 0)
        write(context, (const char *)stream->held, stream->n_held);
    stream->n_held = 0;
}
