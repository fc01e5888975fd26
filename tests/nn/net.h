/* SPDX-License-Identifier: MIT
 * A graph of layers with its weights on the backend under test (tests/devices.h): built, filled, run, read.
 * Every value goes in and out as double. A failure fails the test. */
#ifndef TESTS_NN_NET_H
#define TESTS_NN_NET_H

#include <tfm/nn.h>
#include <tfm/plan.h>

#include "tests/devices.h" /* its test_backend is the one of net.c: see net_backend */

enum { NET_BOUND = 16, NET_SEQUENCES = 8 };

struct net {
    struct test_devices devices;
    struct tfm_graph *graph;
    struct tfm_weights *weights;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    struct tfm_capacity capacity;
    struct {
        const struct tfm_tensor *tensor;
        void *data;
        size_t elements, bytes;
    } bound[NET_BOUND]; /* inputs and outputs */
    size_t n_bound;
};

/* Opens the device and an empty graph. */
void net_begin(struct net *net, uint32_t rows, uint32_t sequences);
void net_end(struct net *net);

/* Input [N, d1, d2] (0 ends the shape). */
struct tfm_tensor *net_input(struct net *net, const char *name, enum tfm_dtype dtype, int64_t d1,
                             int64_t d2);
/* Marks the output "y". */
void net_output(struct net *net, struct tfm_tensor *tensor);

/* Gives a parameter or buffer of the graph its values, before compile. */
void net_set(struct net *net, const char *name, const double *values);
void net_set_all(struct net *net, const char *name, double value);
/* Parameters that start as 0 or 1 get values of their own: one that is left out or mistaken for another must show. */
void net_disturb(struct net *net);
/* Initial values for what was not set, then plan and exec. */
void net_compile(struct net *net, uint64_t seed);
/* Values of a parameter or buffer; the caller frees them. */
double *net_weight(const struct net *net, const char *name);
size_t net_elements(const struct tfm_tensor *tensor);

/* Elements of an input or output from number `first` on. */
void net_put(struct net *net, const char *name, size_t first, size_t n, const double *values);
void net_put_i32(struct net *net, const char *name, size_t first, size_t n, const int32_t *values);
void net_get(const struct net *net, const char *name, size_t first, size_t n, double *values);
const void *net_memory(const struct net *net, const char *name);

enum tfm_status net_try(struct net *net, const struct tfm_rows *rows, struct tfm_error *err);
void net_run(struct net *net, const struct tfm_rows *rows);
/* n rows of one sequence in slot 0 after `past`, all of them wanted from take_rows. */
struct tfm_rows net_rows(uint32_t n, int32_t past);
void net_run_n(struct net *net, uint32_t n, int32_t past);

/* Fixed numbers in [-1, 1). */
double net_random(uint64_t seed, uint64_t index);
void net_fill(double *values, size_t n, uint64_t seed);

/* Largest |got - want| is at most `tolerance` times the largest |want|. */
void net_compare(const double *got, const double *want, size_t n, double tolerance,
                 const char *what);

/* Which one the nets that begin from now on are on. */
void net_backend_choose(const char *backend);
/* The backend under test. */
const char *net_backend(void);
/* The main of a program with one suite on one backend. */
int net_main(const char *backend, Suite *(*make)(void));
TCase *net_case(Suite *suite, const char *name);

#endif
