/* The size of the path of a descriptor in /proc. */
#define FD_TO_FILENAME_SIZE (sizeof("/proc/self/fd/") + 12)
