/* SPDX-License-Identifier: MIT
 * Streaming decode: whole characters as soon as they are whole, and every byte in the end. */
#include <string.h>

#include <check.h>

#include <tfm/tokenizer.h>

struct sink {
    char text[4096];
    size_t size;
    size_t starts[512]; /* where each write began */
    size_t n;
};

static void collect(void *context, const char *data, size_t size)
{
    struct sink *sink = context;

    ck_assert_uint_gt(size, 0);
    ck_assert_uint_le(sink->size + size, sizeof sink->text);
    ck_assert_uint_lt(sink->n, sizeof sink->starts / sizeof *sink->starts);
    sink->starts[sink->n++] = sink->size;
    memcpy(sink->text + sink->size, data, size);
    sink->size += size;
}

static const struct {
    const char *pieces[8]; /* NULL ends */
    const char *writes[8]; /* what is written after each of them, "" = nothing; the last at flush */
} rows[] = {
    /* A30: "a 😀 b" with an emoji of three tokens */
    {{"a", " \xf0\x9f", "\x98", "\x80", " b", NULL}, {"a", " ", "", "\xf0\x9f\x98\x80", " b", ""}},
    {{"\xf0", "\x9f", "\x98", "\x80", NULL}, {"", "", "", "\xf0\x9f\x98\x80", ""}},
    {{"\xc3", "\xa9\xc3", "\xa9", NULL}, {"", "\xc3\xa9", "\xc3\xa9", ""}},
    {{"\xe6\x97\xa5\xe6", "\x9c\xac!", NULL}, {"\xe6\x97\xa5", "\xe6\x9c\xac!", ""}},
    /* the end comes inside of a character */
    {{"x\xf0\x9f\x98", NULL}, {"x", "\xf0\x9f\x98"}},
    {{"\xe2", "\x82", NULL}, {"", "", "\xe2\x82"}},
    /* what can never become a character is not held */
    {{"\x80", "\xff", "\xc0", "\xf5", NULL}, {"\x80", "\xff", "\xc0", "\xf5", ""}},
    {{"\xe0\x9f", "\xed\xa0", "\xf4\x90", NULL}, {"\xe0\x9f", "\xed\xa0", "\xf4\x90", ""}},
    {{"\xe2", "\xe2\x82", "\xac", NULL}, {"", "\xe2", "\xe2\x82\xac", ""}},
    {{"\xf0\x9f", "a", NULL},
     {"",
      "\xf0\x9f"
      "a",
      ""}},
    {{"\xc3", "", "\xa9", NULL}, {"", "", "\xc3\xa9", ""}},
};

/* Catches: a character printed in halves, one held too long or lost, bad bytes held for ever. */
START_TEST(writes_after_each_piece)
{
    struct tfm_stream stream = {{0}, 0};
    struct sink sink = {.size = 0};
    size_t i = 0, before;

    for (; rows[_i].pieces[i]; i++) {
        before = sink.size;
        tfm_stream_put(&stream, rows[_i].pieces[i], strlen(rows[_i].pieces[i]), collect, &sink);
        ck_assert_msg(sink.size - before == strlen(rows[_i].writes[i]) &&
                          memcmp(sink.text + before, rows[_i].writes[i], sink.size - before) == 0,
                      "row %d, piece %zu", _i, i);
    }
    before = sink.size;
    tfm_stream_flush(&stream, collect, &sink);
    ck_assert(sink.size - before == strlen(rows[_i].writes[i]) &&
              memcmp(sink.text + before, rows[_i].writes[i], sink.size - before) == 0);
    tfm_stream_flush(&stream, collect, &sink); /* a second one has nothing left */
    ck_assert_uint_eq(stream.n_held, 0);
}
END_TEST

static uint64_t state;

static size_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % n);
}

/* Catches: bytes lost, doubled or out of order for any way to cut any bytes; a write that begins or ends
 * inside of a character of good text; more held than one character. */
START_TEST(any_bytes_cut_anyhow)
{
    static const char *const parts[] = {
        "a",    "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x98\x80", " ",
        "\x80", "\xc3",     "\xe6\x97",     "\xf0\x9f\x98",     "\xff"};

    for (uint64_t round = 0; round < 5000; round++) {
        struct tfm_stream stream = {{0}, 0};
        struct sink sink = {.size = 0};
        char text[256];
        size_t size = 0, at = 0, good = round % 2 ? 5 : 10; /* the others are bad text */
        state = round * 7919 + 1;
        for (size_t i = 1 + below(40); i > 0; i--) {
            const char *part = parts[below(good)];
            memcpy(text + size, part, strlen(part));
            size += strlen(part);
        }
        while (at < size) {
            size_t n = below(6);
            if (n > size - at)
                n = size - at;
            tfm_stream_put(&stream, text + at, n, collect, &sink);
            at += n;
            if (stream.n_held > 3 || sink.size + stream.n_held != at)
                ck_abort_msg("round %d: %zu of %zu bytes written, %zu held", (int)round, sink.size,
                             at, stream.n_held);
        }
        tfm_stream_flush(&stream, collect, &sink);
        if (sink.size != size || memcmp(sink.text, text, size) != 0)
            ck_abort_msg("round %d: other bytes", (int)round);
        for (size_t i = 0; i < sink.n && good == 5; i++)
            if (((unsigned char)sink.text[sink.starts[i]] & 0xc0) == 0x80)
                ck_abort_msg("round %d: a write begins inside of a character", (int)round);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stream");
    TCase *tcase = tcase_create("utf8");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, writes_after_each_piece, 0, (int)(sizeof rows / sizeof *rows));
    tcase_add_test(tcase, any_bytes_cut_anyhow);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
