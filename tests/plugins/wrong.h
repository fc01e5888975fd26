/* SPDX-License-Identifier: MIT
 * The faults of the wrong backends. TFM_WRONG(name, "what it does"): compiled with
 * -DWRONG=name the module is wrong_<name>.so. */
#ifndef TESTS_PLUGINS_WRONG_H
#define TESTS_PLUGINS_WRONG_H

#define TFM_WRONGS                                                             \
    TFM_WRONG(nothing, "right")                                                \
    TFM_WRONG(head_map, "head h reads group h mod G")                          \
    TFM_WRONG(mask, "a row does not see its own cell")                         \
    TFM_WRONG(cell, "a key goes to the cell before its own")                   \
    TFM_WRONG(beta, "the old output times 0 is added")                         \
    TFM_WRONG(offset, "the offset of an input is ignored")                     \
    TFM_WRONG(dtype, "f16 is promised and not there")                          \
    TFM_WRONG(leak, "buffers are not freed")                                   \
    TFM_WRONG(past_end, "a vector of four is stored past the end")             \
    TFM_WRONG(ragged, "the rest of a sum that is no multiple of four is lost") \
    TFM_WRONG(input, "an input is written to")                                 \
    TFM_WRONG(nan_lost, "NaN becomes 0")                                       \
    TFM_WRONG(threads, "scratch memory is shared by all threads")              \
    TFM_WRONG(no_memory, "an allocation is not looked at before it is used")   \
    TFM_WRONG(crash, "no rows are a crash")                                    \
    TFM_WRONG(exit, "the process is ended")                                    \
    TFM_WRONG(probe, "probe is a crash")

#endif
