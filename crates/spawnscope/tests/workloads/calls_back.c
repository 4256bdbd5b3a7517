/* A library with a function NAME, which calls a function of its caller. */
int NAME(int (*function)(int), int argument);

int NAME(int (*function)(int), int argument)
{
	return function(argument) + 1;
}
