/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"
#include "reports/comparison_facts.h"
#include "reports/comparison_words.h"
#include "reports/html_internal.h"

/*
 * One page that needs nothing else: no network, no script. Verdicts come first, then pictures and
 * tables. Colours are an even-lightness set that differ for colour-blind readers too (after Okabe &
 * Ito), and every picture says in words what it shows.
 */
static const char style[] =
	":root{--text:#1b1f24;--page:#fff;--soft:#57606a;--line:#c9d1d9;--box:#f4f6f8;"
	"--c0:#0060a8;--c1:#b34700;--c2:#00735a;--c3:#8a3b78;--c4:#7a6000;--c5:#444c56;"
	"--bad:#a40e26;--good:#116329}\n"
	"@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--page:#12161c;--soft:#a3adb8;"
	"--line:#3d444d;--box:#1c222a;--c0:#6cb6ff;--c1:#ffa657;--c2:#56d4a8;--c3:#e3a3d6;"
	"--c4:#e6d05c;--c5:#b8c0c8;--bad:#ff9492;--good:#7ee787}}\n"
	":root{color-scheme:light dark}\n"
	"*{box-sizing:border-box}body{margin:0 auto;max-width:60rem;padding:1rem;color:var(--text);"
	"background:var(--page);font:1rem/1.5 system-ui,sans-serif}\n"
	"h1{font-size:1.6rem}h2{font-size:1.25rem;margin-top:2rem}h3{font-size:1.05rem}\n"
	"p,li,h1,h2,h3,figcaption{overflow-wrap:anywhere}.scroll{overflow-x:auto}\n"
	"table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
	"th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:right}\n"
	"th:first-child,td:first-child{text-align:left}th{color:var(--soft)}\n"
	"pre{background:var(--box);padding:.8rem;overflow-x:auto}figure{margin:1rem 0}\n"
	"svg{width:100%;height:auto;display:block}figcaption,.note{color:var(--soft)}\n"
	".slower{color:var(--bad);font-weight:700}.faster{color:var(--good);font-weight:700}\n"
	".arm0{fill:var(--c0);stroke:var(--c0);color:var(--c0)}"
	".arm1{fill:var(--c1);stroke:var(--c1)}.arm2{fill:var(--c2);stroke:var(--c2)}"
	".arm3{fill:var(--c3);stroke:var(--c3)}.arm4{fill:var(--c4);stroke:var(--c4)}"
	".arm5{fill:var(--c5);stroke:var(--c5)}\n"
	"circle{fill-opacity:.55;stroke:none}.interval{fill-opacity:.35;stroke:none}"
	".median{stroke-width:3}.line{fill:none;stroke-width:2}\n"
	".grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}\n"
	"text{font:14px system-ui,sans-serif;stroke:none}.tick,.share{fill:var(--soft)}"
	".tick{text-anchor:middle}.name{fill:var(--text);font-weight:600}"
	".legend{text-anchor:end;font-weight:600;stroke:none}\n"
	"@media(max-width:600px){text{font-size:23px}}\n"
	".bar{display:inline-block;height:.7rem;background:var(--c0)}\n";

static void write_head(FILE *stream, const struct comparison_report *report)
{
	char *machine = facts_machine(report), *runs = facts_runs(report);
	char *command = facts_command(report);

	fprintf(stream,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<title>Latency comparison</title>\n<link rel=\"icon\" href=\"data:,\">\n"
		"<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>Latency comparison</h1>\n",
		style);
	if (command) {
		fputs("<p><code>", stream);
		markup_escape(stream, command);
		fputs("</code></p>\n", stream);
	}
	html_element(stream, "p", machine);
	html_element(stream, "p", runs);
	free(command);
	free(machine);
	free(runs);
}

static void write_verdict(FILE *stream, const struct comparison *comparison,
			  const struct comparison_pair *pair)
{
	char *text = words_text(comparison, pair, "");

	if (!text)
		return;
	/* The sentence says the verdict; the badge has its colour and says of what. */
	fprintf(stream, "<li><span class=\"%s\">", comparison_verdict_name(pair->verdict));
	markup_escape(stream, comparison->metric);
	fputs("</span>: ", stream);
	markup_escape(stream, text);
	fputs("</li>\n", stream);
	free(text);
}

static void write_verdicts(FILE *stream, const struct comparison_report *report,
			   struct comparison *const *comparisons)
{
	fputs("<ul>\n", stream);
	for (size_t i = 0; i < report->count; i++)
		for (size_t k = 0; k < comparisons[i]->pair_count; k++)
			write_verdict(stream, comparisons[i], &comparisons[i]->pairs[k]);
	fputs("</ul>\n", stream);
}

static void write_number(FILE *stream, double value)
{
	char text[32];

	fprintf(stream, "<td>%s</td>", words_number(value, 12, text, sizeof(text)));
}

static void write_table(FILE *stream, const struct comparison *comparison)
{
	fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table of ",
	      stream);
	markup_escape(stream, comparison->metric);
	fputs("\"><table>\n<tr><th scope=\"col\">arm</th><th scope=\"col\">runs</th><th "
	      "scope=\"col\">min</th><th scope=\"col\">median</th><th scope=\"col\">interval</th>"
	      "<th scope=\"col\">mean</th><th scope=\"col\">stddev</th><th scope=\"col\">max</th>"
	      "<th scope=\"col\">left out</th></tr>\n",
	      stream);
	for (size_t i = 0; i < comparison->count; i++) {
		const struct comparison_arm *arm = &comparison->arms[i];

		fputs("<tr><th scope=\"row\">", stream);
		markup_escape(stream, arm->name);
		fprintf(stream, "</th><td>%zu</td>", arm->count);
		write_number(stream, arm->minimum);
		write_number(stream, arm->median);
		if (isfinite(arm->median_ci.low) && isfinite(arm->median_ci.high))
			fprintf(stream, "<td>%.4g to %.4g</td>", arm->median_ci.low,
				arm->median_ci.high);
		else
			fputs("<td>too few runs</td>", stream);
		write_number(stream, arm->mean);
		write_number(stream, arm->stddev);
		write_number(stream, arm->maximum);
		fprintf(stream, "<td>%zu</td></tr>\n",
			arm->invalid + arm->failed + arm->interrupted + arm->without_value);
	}
	fputs("</table></div>\n", stream);
}

static void write_metric(FILE *stream, const struct comparison *comparison)
{
	fputs("<h2>", stream);
	html_metric(stream, comparison);
	fputs("</h2>\n<figure>\n", stream);
	html_picture_runs(stream, comparison);
	fputs("<figcaption>Every run is a mark; the bar below is the interval of the median."
	      "</figcaption>\n</figure>\n<figure>\n",
	      stream);
	html_picture_ecdf(stream, comparison);
	fputs("<figcaption>Share of the runs at or below a value.</figcaption>\n</figure>\n",
	      stream);
	write_table(stream, comparison);
}

static void write_method(FILE *stream, const struct comparison_report *report)
{
	char *text = report->count ? words_text(report->comparisons[0], NULL, "") : NULL;

	html_element(stream, "p class=\"note\"", text);
	free(text);
}

static int write_html(FILE *stream, const struct comparison_report *report)
{
	write_head(stream, report);
	fputs("<h2 id=\"verdicts\">Verdicts</h2>\n", stream);
	write_verdicts(stream, report, report->comparisons);
	if (report->with_invalid) {
		fputs("<p>With the invalid runs:</p>\n", stream);
		write_verdicts(stream, report, report->with_invalid);
	}
	write_method(stream, report);
	for (size_t i = 0; i < report->count; i++)
		write_metric(stream, report->comparisons[i]);
	html_parts(stream, report);
	fputs("</main>\n</body>\n</html>\n", stream);
	return ferror(stream) ? -EIO : 0;
}

const struct report_ops report_html = {
	.name = "html",
	.summary = "one page with pictures, for a browser",
	.compare = write_html,
};
