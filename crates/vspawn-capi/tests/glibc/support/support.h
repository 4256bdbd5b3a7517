/* See shim.h. */
#include "../shim.h"
