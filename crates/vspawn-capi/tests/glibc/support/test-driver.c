/* The `main` of a test: parses the test's options, prepares the test and runs it. The script sets the time limit. A test that starts
 * itself again passes --direct, as within glibc. */
#include "../shim.h"

int main(int argc, char **argv)
{
	static const struct option options[] = {
#ifdef CMDLINE_OPTIONS
		CMDLINE_OPTIONS
#endif
		{"direct", no_argument, NULL, 'd'},
		{NULL, 0, NULL, 0},
	};
	int option;
	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1)
		TEST_VERIFY_EXIT(option != '?');
	/* The test gets its own name and the remaining arguments. */
	argv[optind - 1] = argv[0];
	argc -= optind - 1;
	argv += optind - 1;
#ifdef PREPARE
	PREPARE(argc, argv);
#endif
#if defined TEST_FUNCTION_ARGV
	return TEST_FUNCTION_ARGV(argc, argv);
#else
	return do_test();
#endif
}
