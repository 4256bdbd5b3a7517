// A program that its dynamic loader has to find three libraries for, besides the C library.
int first(void);
int second(void);
int third(void);

int main(void)
{
    return first() + second() + third();
}
