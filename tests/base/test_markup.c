/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include "base/markup.h"

static void expect(const char *text, const char *wanted)
{
	char *got = NULL;
	size_t size;
	FILE *stream = open_memstream(&got, &size);

	markup_escape(stream, text);
	assert_int_equal(fclose(stream), 0);
	assert_string_equal(got, wanted);
	free(got);
}

static void nothing_of_the_text_is_markup(void **state)
{
	expect("", "");
	expect("a < b && \"c\" > 'd'", "a &lt; b &amp;&amp; &quot;c&quot; &gt; 'd'");
	expect("&amp;", "&amp;amp;");
	expect("one\n\ttwo", "one\n\ttwo");
	expect("\x01\x1f\x7f\xc3\xa4", "  \x7f\xc3\xa4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_of_the_text_is_markup),
	};

	return cmocka_run_group_tests_name("base/markup", tests, NULL, NULL);
}
