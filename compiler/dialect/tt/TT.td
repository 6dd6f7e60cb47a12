// The whole dialect in one file, from which everything generated is made.

#ifndef TRITON_METAL_DIALECT_TT_TD
#define TRITON_METAL_DIALECT_TT_TD

include "dialect/tt/TTDialect.td"
include "dialect/tt/TTTypes.td"
include "dialect/tt/TTOps.td"
include "dialect/tt/TTMemoryOps.td"
include "dialect/tt/TTBlockOps.td"
include "dialect/tt/TTRegionOps.td"

#endif
