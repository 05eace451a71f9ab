/* What the scenarios set inside of node.c, to begin where programs come after long. */
#ifndef NODE_INSIDE_H
#define NODE_INSIDE_H

#include "node.h"

/* Letters and pieces of a rank's end of a lane, which nobody has used, are counted from here. */
void begin_counting_at(struct node *node, uint32_t count);

#endif
