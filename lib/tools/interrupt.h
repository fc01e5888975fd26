/* SPDX-License-Identifier: MIT
 * Ctrl-C: the first one asks, the second one ends the program. */
#ifndef TFM__TOOLS_INTERRUPT_H
#define TFM__TOOLS_INTERRUPT_H

/* From now on a first SIGINT only sets the flag; the second has its usual effect. */
void tfm__interrupt_catch(void);
/* 1 after the first. */
int tfm__interrupted(void);

#endif
