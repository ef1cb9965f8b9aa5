/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "record/record.h"
#include "reports/comparison_facts.h"
#include "reports/html_internal.h"

static void write_paragraph(FILE *stream, const char *text)
{
	html_element(stream, "p", text);
}

static void write_differences(FILE *stream, const struct comparison_report *report)
{
	fputs("<h2 id=\"differences\">What differs besides the arm</h2>\n", stream);
	if (!json_array_size(report->differences)) {
		fputs("<p>Nothing that the records tell.</p>\n", stream);
		return;
	}
	fputs("<ul>\n", stream);
	html_elements(stream, "li", report->differences);
	fputs("</ul>\n", stream);
}

/* The same reason with other numbers in it: runs that give it are told together. */
static bool same_reason(const char *a, const char *b)
{
	for (;;) {
		a += strspn(a, "0123456789.");
		b += strspn(b, "0123456789.");
		if (*a != *b)
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

static const char *first_reason(const struct record *record)
{
	const char *text = json_string_value(json_array_get(record->reasons, 0));

	return text ? text : "";
}

static bool told_alike(const struct record *a, const struct record *b)
{
	return a->verdict == b->verdict && same_reason(first_reason(a), first_reason(b));
}

/* Has a run before @index of the arm given this reason? */
static bool told_before(const struct arm *arm, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (told_alike(arm->records[i], arm->records[index]))
			return true;
	return false;
}

static void write_reason(FILE *stream, const struct arm *arm, size_t index)
{
	const struct record *record = arm->records[index];
	size_t more = 0;

	for (size_t i = index + 1; i < arm->record_count; i++)
		more += told_alike(arm->records[i], record);
	fputs("<li>", stream);
	markup_escape(stream, arm->name);
	fprintf(stream, ", run %.8s", record->id);
	if (more)
		fprintf(stream, " and %zu like it", more);
	fprintf(stream, ": %s: ", verdict_name(record->verdict));
	markup_escape(stream, first_reason(record));
	fputs("</li>\n", stream);
}

static void write_reasons(FILE *stream, const struct comparison_report *report)
{
	bool any = false;

	for (size_t i = 0; i < report->set->count; i++) {
		const struct arm *arm = &report->set->arms[i];

		for (size_t k = 0; k < arm->record_count; k++) {
			if (arm->records[k]->verdict == VERDICT_VALID || told_before(arm, k))
				continue;
			fputs(any ? "" : "<ul>\n", stream);
			any = true;
			write_reason(stream, arm, k);
		}
	}
	if (any)
		fputs("</ul>\n", stream);
}

static void write_validity(FILE *stream, const struct comparison_report *report)
{
	char *validity = facts_validity(report);

	fputs("<h2 id=\"validity\">Validity</h2>\n", stream);
	if (!validity)
		fputs("<p>Plain numbers: nothing is known of how they were measured.</p>\n",
		      stream);
	write_paragraph(stream, validity);
	free(validity);
	write_reasons(stream, report);
	facts_caveats(stream, report, write_paragraph);
}

/* Late time above the 99.9th percentile by cause, summed over the runs of an arm that have it. */
static json_t *sum_causes(const struct arm *arm)
{
	json_t *sums = json_object();

	for (size_t i = 0; i < arm->record_count; i++) {
		const json_t *tail = json_at(arm->records[i]->counters, "causes.tail"), *entry;
		size_t k;

		json_array_foreach (json_object_get(tail, "by_cause"), k, entry) {
			const char *name = json_get_string(entry, "cause", "unknown");

			json_put(sums, name,
				 json_real(json_get_number(sums, name, 0) +
					   json_get_number(entry, "percent", 0)));
		}
	}
	return sums;
}

static void write_cause_bars(FILE *stream, const struct arm *arm, const json_t *sums)
{
	const char *name;
	double all = 0;
	json_t *sum;

	json_object_foreach ((json_t *)sums, name, sum)
		all += json_number_value(sum);
	html_element(stream, "h3", arm->name);
	fputs("<table><tr><th scope=\"col\">cause</th><th scope=\"col\">share of the late "
	      "time</th><th scope=\"col\"></th></tr>\n",
	      stream);
	json_object_foreach ((json_t *)sums, name, sum) {
		double share = all > 0 ? 100 * json_number_value(sum) / all : 0;

		fputs("<tr><td>", stream);
		markup_escape(stream, name);
		fprintf(stream,
			"</td><td>%.0f%%</td><td><span class=\"bar\" style=\"width:%.0fpx\">"
			"</span></td></tr>\n",
			share, share);
	}
	fputs("</table>\n", stream);
}

static void write_causes(FILE *stream, const struct comparison_report *report)
{
	bool any = false;

	for (size_t i = 0; i < report->set->count; i++) {
		json_t *sums = sum_causes(&report->set->arms[i]);

		if (json_object_size(sums)) {
			if (!any)
				fputs("<h2 id=\"causes\">Causes of the worst delays (late time above the 99.9th percentile)</h2>\n",
				      stream);
			any = true;
			write_cause_bars(stream, &report->set->arms[i], sums);
		}
		json_decref(sums);
	}
}

/* Quoted as a shell wants it. */
static void write_word(FILE *stream, const char *text, bool first)
{
	bool quote = text && (!*text || strpbrk(text, " \t\n\"'$|;&<>()*?[]\\`"));

	fputs(first ? "" : " ", stream);
	fputs(quote ? "'" : "", stream);
	for (; text && *text; text++) {
		char letter[2] = {*text, '\0'};

		markup_escape(stream, quote && *text == '\'' ? "'\\''" : letter);
	}
	fputs(quote ? "'" : "", stream);
}

static void write_command(FILE *stream, const struct arm *arm)
{
	const json_t *command = arm->record_count ? arm->records[0]->command : NULL, *word;
	size_t i;

	if (!json_array_size(command))
		return;
	json_array_foreach (command, i, word)
		write_word(stream, json_string_value(word), i == 0);
	fputc('\n', stream);
}

static void write_commands(FILE *stream, const struct comparison_report *report)
{
	fputs("<h2 id=\"reproduce\">To reproduce</h2>\n<pre tabindex=\"0\">", stream);
	for (size_t i = 0; i < report->set->source_count; i++) {
		const struct arm_source *source = &report->set->sources[i];

		if (source->plan)
			fprintf(stream, "# order of the runs: seed %lld\n",
				(long long)json_get_int64(source->plan, "seed", -1));
	}
	for (size_t i = 0; i < report->set->count; i++) {
		fputs("# ", stream);
		markup_escape(stream, report->set->arms[i].name);
		fputc('\n', stream);
		write_command(stream, &report->set->arms[i]);
	}
	fputs("</pre>\n", stream);
}

void html_parts(FILE *stream, const struct comparison_report *report)
{
	write_causes(stream, report);
	write_differences(stream, report);
	write_validity(stream, report);
	html_elements(stream, "p class=\"note\"", report->set->notes);
	write_commands(stream, report);
}
