/* SPDX-License-Identifier: MIT
 * `tfm perplexity`: how well a model predicts a text, and what a setting changes about it, token by token. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/core/checked.h"
#include "lib/tools/file.h"
#include "lib/tools/json_text.h"
#include "lib/tools/message.h"
#include "lib/tools/score.h"

struct scored {
    char setting[256]; /* "kv=f32 TFM_ACT=f32" */
    char device[256];
    double *scores; /* [n], window by window */
    struct tfm__score_mean mean;
};

struct perplexity {
    const struct tfm__options *options;
    int32_t *ids;    /* [n_ids]; with --all and a text, the token that begins texts before it */
    uint32_t *bytes; /* [n_ids]: of each token's text */
    size_t n_ids, n_begin; /* n_begin: 1 if it stands there */
    int64_t context;       /* what the model was trained for */
    struct tfm__score_text text;
    size_t n, n_bytes; /* tokens scored, and the bytes of their texts */
    struct scored sides[2];
    size_t n_sides;
    struct tfm__score_mean difference, by_window; /* second side minus first */
};

/* ---- the tokens ---- */

static int parse_ids(const char *name, const char *data, size_t size, struct perplexity *p)
{
    size_t bytes;
    if (tfm__mul_size(size / 2 + 1, sizeof *p->ids, &bytes) || !(p->ids = malloc(bytes)))
        return tfm__failed("out of memory");
    for (size_t at = 0; at < size;) {
        char *end;
        if (strchr(" \t\r\n,", data[at]) && data[at]) {
            at++;
            continue;
        }
        errno = 0;
        const long long id = strtoll(data + at, &end, 10);
        const size_t next = (size_t)(end - data);
        if (data[at] < '0' || data[at] > '9' || errno || id > INT32_MAX ||
            (next < size && (!data[next] || !strchr(" \t\r\n,", data[next]))))
            return tfm__failed("%s: no token id at byte %zu", name, at);
        p->ids[p->n_ids++] = (int32_t)id;
        at = next;
    }
    return TFM__EXIT_OK;
}

/* Windows one behind the other get BOS where each begins. Windows that overlap go through one text, and its
 * first token is to be predicted too: from what stands before texts in training. */
static int encode(const struct tfm_tokenizer *tokenizer, const char *data, size_t size,
                  struct perplexity *p)
{
    const int32_t bos = tfm_tokenizer_bos(tokenizer);
    struct tfm_error err;

    if (tfm_tokenizer_encode(tokenizer, data, size, 0, &p->ids, &p->n_ids, &err))
        return tfm__failed("the text: %s", err.text);
    if (!p->options->all || bos < 0 || bos == tfm_tokenizer_eos(tokenizer))
        return TFM__EXIT_OK;
    size_t bytes;
    if (tfm__mul_size(p->n_ids + 1, sizeof *p->ids, &bytes))
        return tfm__failed("out of memory");
    int32_t *more = realloc(p->ids, bytes);
    if (!more)
        return tfm__failed("out of memory");
    memmove(more + 1, more, p->n_ids * sizeof *more);
    more[0] = bos;
    p->ids = more;
    p->n_ids++;
    p->n_begin = 1;
    return TFM__EXIT_OK;
}

/* What is read is the sum over tokens, not the size of the text: that is right for a part of it, and for --ids. */
static int count_bytes(const struct tfm_tokenizer *tokenizer, struct perplexity *p)
{
    struct tfm_error err;

    p->bytes = calloc(p->n_ids + 1, sizeof *p->bytes);
    if (!p->bytes)
        return tfm__failed("out of memory");
    for (size_t i = 0; i < p->n_ids; i++) {
        struct tfm_text piece;
        if (tfm_tokenizer_piece(tokenizer, p->ids[i], &piece, &err))
            return tfm__failed("token %zu of the text: %s", i, err.text);
        if (!tfm_tokenizer_is_control(tokenizer, p->ids[i]))
            p->bytes[i] = (uint32_t)piece.size;
    }
    return TFM__EXIT_OK;
}

static int read_tokens(struct perplexity *p)
{
    const struct tfm__options *o = p->options;
    const char *name = o->given.ids_file ? o->ids_file : o->text_file;
    struct tfm__setup setup = {0};
    char *data = NULL;
    size_t size = 0;

    int code = tfm__setup_model(o, &setup);
    if (code == TFM__EXIT_OK && tfm__file_read(name, &data, &size))
        code = TFM__EXIT_FAILED;
    if (code == TFM__EXIT_OK) {
        const struct tfm_tokenizer *tokenizer = tfm_model_tokenizer(setup.model);
        p->context = tfm_model_config(setup.model)->context;
        p->text.first = tfm_tokenizer_add_bos(tokenizer) ? tfm_tokenizer_bos(tokenizer) : -1;
    }
    if (code == TFM__EXIT_OK && o->given.ids_file) {
        char *text = realloc(data, size + 1); /* strtoll needs an end */
        if (text) {
            data = text;
            data[size] = 0;
        }
        code = text ? parse_ids(name, data, size, p) : tfm__failed("out of memory");
    } else if (code == TFM__EXIT_OK)
        code = encode(tfm_model_tokenizer(setup.model), data, size, p);
    if (code == TFM__EXIT_OK)
        code = count_bytes(tfm_model_tokenizer(setup.model), p);
    free(data);
    tfm__setup_close(&setup);
    return code;
}

static int cut(struct perplexity *p)
{
    const size_t most = (size_t)p->options->windows;
    struct tfm__score_text *text = &p->text;

    text->ids = p->ids;
    text->n = p->n_ids;
    text->window = (size_t)p->options->window;
    if (!p->options->given.window && p->options->window > p->context && p->context >= 4)
        text->window = (size_t)p->context;
    text->all = p->options->all;
    /* one window that is the text; two tokens at least: one to predict, one to predict it from */
    if (text->all && text->n >= 2 && text->n < text->window)
        text->window = text->n;
    text->windows = tfm__score_windows(text->n, text->window, text->all);
    if (text->windows == 0)
        return tfm__failed("the text has %zu tokens and a window %zu: give a longer text or a "
                           "smaller -c",
                           p->n_ids, text->window);
    if (most && text->windows > most)
        text->windows = most;
    for (size_t w = 0; w < text->windows; w++) {
        const struct tfm__score_window at = tfm__score_window(text, w);
        p->n += text->window - at.scored; /* at most as many as there are ids */
        for (size_t i = at.begin + at.scored; i < at.begin + text->window; i++)
            p->n_bytes += p->bytes[i];
    }
    return TFM__EXIT_OK;
}

/* ---- settings ---- */

/* Changes the options, and the environment unless `dry`, as NAME=VALUE says. */
static int apply(const char *setting, int dry, struct tfm__options *options)
{
    const char *equal = strchr(setting, '=');
    const size_t size = equal ? (size_t)(equal - setting) : 0;
    char name[64];

    if (size == 0 || size >= sizeof name)
        return tfm__usage("--against '%s' is not NAME=VALUE: kv=f32, backend=reference or a "
                          "variable like TFM_ACT=f32",
                          setting);
    memcpy(name, setting, size);
    name[size] = 0;
    if (strcmp(name, "kv") == 0) {
        enum tfm_dtype type;
        if (tfm_dtype_parse(equal + 1, &type) || (type != TFM_DTYPE_F16 && type != TFM_DTYPE_F32))
            return tfm__usage("--against kv: '%s' is not one of f16|f32", equal + 1);
        options->cache = equal + 1;
    } else if (strcmp(name, "backend") == 0) {
        options->backend = equal + 1;
    } else if (strncmp(name, "TFM_", 4) == 0) {
        if (!dry && setenv(name, equal + 1, 1))
            return tfm__failed("--against %s: %s", setting, strerror(errno));
    } else {
        return tfm__usage("--against %s: there is no setting '%s': kv, backend or a variable that "
                          "begins with TFM_",
                          setting, name);
    }
    return TFM__EXIT_OK;
}

static int score_side(struct perplexity *p, const struct tfm__options *options)
{
    struct scored *side = &p->sides[p->n_sides];

    side->scores = calloc(p->n, sizeof *side->scores);
    if (!side->scores)
        return tfm__failed("out of memory");
    const int code = tfm__score(options, &p->text, p->n_sides ? "scoring again" : "scoring",
                                side->scores, side->device);
    if (code == TFM__EXIT_OK)
        side->mean = tfm__score_average(side->scores, p->n);
    p->n_sides++;
    return code;
}

/* Windows are nearer to independent than neighbouring tokens are: both errors are told. */
static int compare(struct perplexity *p)
{
    const size_t windows = p->text.windows;
    double *differences = calloc(p->n, sizeof *differences);
    double *means = calloc(windows, sizeof *means);

    if (differences && means) {
        for (size_t i = 0; i < p->n; i++)
            differences[i] = p->sides[1].scores[i] - p->sides[0].scores[i];
        const double *of_window = differences;
        for (size_t w = 0; w < windows; w++) {
            const size_t n = p->text.window - tfm__score_window(&p->text, w).scored;
            means[w] = tfm__score_average(of_window, n).mean;
            of_window += n;
        }
        p->difference = tfm__score_average(differences, p->n);
        p->by_window = tfm__score_average(means, windows);
    }
    const int made = differences && means;
    free(differences);
    free(means);
    return made ? TFM__EXIT_OK : tfm__failed("out of memory");
}

/* Before the first minutes are spent. */
static int check_settings(const struct tfm__options *options)
{
    struct tfm__options changed = *options;
    int code = TFM__EXIT_OK;
    for (size_t i = 0; i < options->against.n && code == TFM__EXIT_OK; i++)
        code = apply(options->against.items[i], 1, &changed);
    return code;
}

static int score_against(struct perplexity *p)
{
    const struct tfm__option_list *list = &p->options->against;
    struct tfm__options changed = *p->options;
    char *setting = p->sides[1].setting;
    size_t used = 0;
    int code = TFM__EXIT_OK;

    for (size_t i = 0; i < list->n && code == TFM__EXIT_OK; i++) {
        code = apply(list->items[i], 0, &changed);
        if (used < sizeof p->sides[1].setting)
            used += (size_t)snprintf(setting + used, sizeof p->sides[1].setting - used, "%s%s",
                                     i ? " " : "", list->items[i]);
    }
    if (code == TFM__EXIT_OK)
        code = score_side(p, &changed);
    return code == TFM__EXIT_OK ? compare(p) : code;
}

/* ---- output ---- */

/* Per cent by which the perplexity moves, and its error. */
static double per_cent(double mean)
{
    return 100 * expm1(mean);
}

/* From the mean -ln p of a token. 0 when the scored tokens have no text. */
static double bits_a_byte(const struct perplexity *p, double mean)
{
    return p->n_bytes ? mean * (double)p->n / log(2) / (double)p->n_bytes : 0;
}

static int print_text(const struct perplexity *p)
{
    printf("%zu tokens, %zu windows of %zu, %zu tokens scored (%zu bytes)\n", p->n_ids - p->n_begin,
           p->text.windows, p->text.window, p->n, p->n_bytes);
    for (size_t i = 0; i < p->n_sides; i++) {
        const struct scored *side = &p->sides[i];
        const double perplexity = exp(side->mean.mean);
        printf("mean %.5f ± %.5f, perplexity %.4f ± %.4f, %.4f bits a byte (%s%s%s)\n",
               side->mean.mean, side->mean.error, perplexity, perplexity * side->mean.error,
               bits_a_byte(p, side->mean.mean), side->device, side->setting[0] ? ", " : "",
               side->setting);
    }
    if (p->n_sides < 2)
        return TFM__EXIT_OK;
    const double factor = 100 * exp(p->difference.mean);
    printf("difference %+.6f ± %.6f (over windows ± %.6f), perplexity %+.4f%% ± %.4f%% (over "
           "windows ± %.4f%%)\n",
           p->difference.mean, p->difference.error, p->by_window.error,
           per_cent(p->difference.mean), factor * p->difference.error, factor * p->by_window.error);
    return TFM__EXIT_OK;
}

static int print_json(const struct perplexity *p)
{
    json_t *sides = json_array();
    for (size_t i = 0; sides && i < p->n_sides; i++) {
        const struct scored *side = &p->sides[i];
        const double perplexity = exp(side->mean.mean);
        json_t *row = json_pack("{s:o, s:o, s:f, s:f, s:f, s:f, s:f}", "setting",
                                tfm__json_string(side->setting, strlen(side->setting)), "device",
                                tfm__json_string(side->device, strlen(side->device)), "mean",
                                side->mean.mean, "mean_error", side->mean.error, "perplexity",
                                perplexity, "perplexity_error", perplexity * side->mean.error,
                                "bits_a_byte", bits_a_byte(p, side->mean.mean));
        if (!row || json_array_append_new(sides, row)) {
            json_decref(sides);
            sides = NULL;
        }
    }
    json_t *all =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "tokens", (json_int_t)(p->n_ids - p->n_begin),
                  "windows", (json_int_t)p->text.windows, "window", (json_int_t)p->text.window,
                  "scored", (json_int_t)p->n, "bytes", (json_int_t)p->n_bytes, "settings", sides);
    if (all && p->n_sides == 2) {
        const double factor = 100 * exp(p->difference.mean);
        json_t *difference =
            json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "mean", p->difference.mean, "mean_error",
                      p->difference.error, "mean_error_windows", p->by_window.error, "percent",
                      per_cent(p->difference.mean), "percent_error", factor * p->difference.error,
                      "percent_error_windows", factor * p->by_window.error);
        if (!difference || json_object_set_new(all, "difference", difference)) {
            json_decref(all);
            all = NULL;
        }
    }
    return tfm__json_put(all);
}

int tfm__verb_perplexity(const struct tfm__options *options)
{
    struct perplexity p = {.options = options};
    int code = TFM__EXIT_OK;

    if (options->given.text_file + options->given.ids_file != 1)
        code = tfm__usage("no text, or two: give -f FILE or --ids FILE");
    if (code == TFM__EXIT_OK)
        code = check_settings(options);
    if (code == TFM__EXIT_OK)
        code = read_tokens(&p);
    if (code == TFM__EXIT_OK)
        code = cut(&p);
    if (code == TFM__EXIT_OK)
        code = score_side(&p, options);
    if (code == TFM__EXIT_OK && options->against.n)
        code = score_against(&p);
    if (code == TFM__EXIT_OK)
        code = options->json ? print_json(&p) : print_text(&p);
    for (size_t i = 0; i < p.n_sides; i++)
        free(p.sides[i].scores);
    free(p.ids);
    free(p.bytes);
    return code;
}
