/* SPDX-License-Identifier: MIT
 * Defaults and checks of the settings of training, from their one table. */
#include <stddef.h>

#include <tfm/train_settings.h>

enum kind { COUNT, REAL, FLAG, COMPUTE };

static const struct setting {
    enum kind kind;
    const char *key;
    size_t offset;
    double fallback, least, most;
} table[] = {
#define TFM_TRAIN_SETTING(KIND, field, fallback, least, most, meaning) \
    {KIND, #field, offsetof(struct tfm_trainer_settings, field), fallback, least, most},
#include <tfm/train_settings.def>
#undef TFM_TRAIN_SETTING
};
enum { SETTINGS = sizeof table / sizeof *table };

void tfm_trainer_settings_defaults(struct tfm_trainer_settings *settings)
{
    *settings = (struct tfm_trainer_settings){0};
    for (size_t i = 0; i < SETTINGS; i++) {
        void *field = (char *)settings + table[i].offset;
        if (table[i].kind == COUNT)
            *(int64_t *)field = (int64_t)table[i].fallback;
        else if (table[i].kind == REAL)
            *(double *)field = table[i].fallback;
        else if (table[i].kind == COMPUTE)
            *(enum tfm_dtype *)field = (enum tfm_dtype)table[i].fallback;
        else
            *(int *)field = table[i].fallback != 0;
    }
}

/* ---- checks ---- */

static enum tfm_status check_range(const struct setting *setting, const void *field,
                                   struct tfm_error *err)
{
    if (setting->kind == COUNT) {
        const int64_t n = *(const int64_t *)field;
        if ((double)n < setting->least || (double)n > setting->most)
            return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                                 "training: \"%s\" is %lld; it must be from %.0f to %.0f",
                                 setting->key, (long long)n, setting->least, setting->most);
    } else if (setting->kind == REAL) {
        const double x = *(const double *)field;
        if (!(x >= setting->least && x <= setting->most)) /* NaN is in no range */
            return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                                 "training: \"%s\" is %g; it must be from %g to %g", setting->key,
                                 x, setting->least, setting->most);
    } else if (setting->kind == COMPUTE) {
        const enum tfm_dtype dtype = *(const enum tfm_dtype *)field;
        if (dtype != TFM_DTYPE_F32 && dtype != TFM_DTYPE_BF16)
            return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                                 "training: \"%s\" is %s; it must be f32 or bf16", setting->key,
                                 tfm_dtype_name(dtype));
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm_trainer_settings_check(const struct tfm_trainer_settings *settings,
                                           const struct tfm_nn_decoder *decoder,
                                           struct tfm_error *err)
{
    const struct tfm_trainer_settings *s = settings;

    tfm_error_clear(err);
    for (size_t i = 0; i < SETTINGS; i++) {
        const void *field = (const char *)s + table[i].offset;
        const enum tfm_status status = check_range(&table[i], field, err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    if (s->length > decoder->positions)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                             "training: \"length\" is %lld, but the decoder's \"context\" is %lld; "
                             "make windows shorter or the context longer",
                             (long long)s->length, (long long)decoder->positions);
    if (s->sequences > INT32_MAX / s->length)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                             "training: \"sequences\" %lld of \"length\" %lld are more than %d "
                             "tokens in a run; raise \"accumulate\" instead",
                             (long long)s->sequences, (long long)s->length, INT32_MAX);
    if (s->warmup > s->steps)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                             "training: \"warmup\" is %lld, more than all \"steps\", %lld",
                             (long long)s->warmup, (long long)s->steps);
    if (s->final_rate > s->rate)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                             "training: \"final_rate\" is %g, above the \"rate\", %g",
                             s->final_rate, s->rate);
    if (decoder->bidirectional)
        return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                             "training: the decoder is \"bidirectional\": each row would see the "
                             "token that it is to predict");
    return TFM_STATUS_OK;
}
