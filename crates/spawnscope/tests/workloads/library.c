// A library with one function. Compile with -DNAME=... as a shared object.
int NAME(void);

int NAME(void)
{
    return 0;
}
