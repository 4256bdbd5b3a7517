/* The directory of a process's descriptors. */
#define FD_TO_FILENAME_PREFIX "/proc/self/fd/"
#define FD_TO_FILENAME_SIZE (sizeof(FD_TO_FILENAME_PREFIX) + 12)
