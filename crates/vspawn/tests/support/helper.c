/* `helper FILE` lists the descriptors that a child was given: one line for each, with its number and its target. It is in C, so that no
 * runtime opens or changes a descriptor first. FILE is opened last, so that it is not in the list. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char lines[4000000];
    size_t used = 0;
    if (argc != 2)
        return 2;
    DIR *directory = opendir("/proc/self/fd");
    if (!directory)
        return 3;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char link[64], target[512];
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(directory))
            continue;
        snprintf(link, sizeof link, "/proc/self/fd/%.20s", entry->d_name);
        ssize_t length = readlink(link, target, sizeof target - 1);
        if (length < 0)
            return 4;
        target[length] = 0;
        used += (size_t)snprintf(lines + used, sizeof lines - used, "%.20s %s\n", entry->d_name, target);
    }
    closedir(directory);
    FILE *file = fopen(argv[1], "w");
    return file && fwrite(lines, 1, used, file) == used && !fclose(file) ? 0 : 5;
}
