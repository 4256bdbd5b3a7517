// A program for which the dynamic loader must find three libraries, besides the C library.
int first(void);
int second(void);
int third(void);

int main(void)
{
    return first() + second() + third();
}
