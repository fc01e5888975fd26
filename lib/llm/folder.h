/* SPDX-License-Identifier: MIT
 * A folder as Hugging Face has models: config.json, tokenizer.json, model.safetensors. It is read as if it were a GGUF
 * file, so that everything behind the reader knows one form: the two JSON files become metadata, tensors get
 * GGUF's names and stay where they are. */
#ifndef TFM__LLM_FOLDER_H
#define TFM__LLM_FOLDER_H

#include <jansson.h>

#include <tfm/gguf_write.h>
#include <tfm/safetensors.h>

/* 1 if `path` is a folder. */
int tfm__folder_is(const char *path);
/* tensors 0: the tokenizer alone. IO, FORMAT, UNSUPPORTED (what the model has and TFM has not), NOMEM. */
enum tfm_status tfm__folder_open(const char *path, int tensors, struct tfm_gguf **gguf,
                                 struct tfm_error *err);

/* ---- its parts ---- */

/* The JSON object in path/name. IO, FORMAT, NOMEM. */
enum tfm_status tfm__folder_json(const char *path, const char *name, json_t **json,
                                 struct tfm_error *err);
/* config.json as general.* and llama.* keys; *tied = there is no head of its own. FORMAT, UNSUPPORTED. */
enum tfm_status tfm__folder_config(const char *path, const json_t *config,
                                   struct tfm_gguf_writer *writer, int *tied,
                                   struct tfm_error *err);
/* tokenizer.json (and the ids in config.json) as tokenizer.ggml.* keys; n = tokens that config.json tells of. FORMAT, UNSUPPORTED, NOMEM. */
enum tfm_status tfm__folder_tokenizer(const char *path, const json_t *tokenizer,
                                      const json_t *config, int64_t n,
                                      struct tfm_gguf_writer *writer, struct tfm_error *err);

/* GGUF's name of a tensor of a Llama as Hugging Face calls it, and the other way; 1 if there is none. */
int tfm__folder_name_in(const char *theirs, char name[64]);
int tfm__folder_name_out(const char *name, char theirs[128]);

/* GGUF's name of a parameter of a decoder ("blk.0.attn.q.weight"); 1 if no Llama has it. */
int tfm__llama_name(const char *ours, char name[64]);

/* How Llama 3's tokenizer.json writes its regular expression. */
extern const char tfm__folder_llama3[];

#endif
