/* Older tests include this driver. */
#include "support/test-driver.c"
