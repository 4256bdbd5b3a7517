/* A library that calls back, under the name NAME. */
int NAME(int (*function)(int), int argument);

int NAME(int (*function)(int), int argument)
{
	return function(argument) + 1;
}
