# syslat export, import and report -o report.html: formats of others, and a page for a browser.
# shellcheck shell=bash source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
noise=$source_root/tests/stats/data/tip-mean.txt
cd "$work" || exit 1
mkdir e && "$build/tests/history/make_history" -n 40 -p 2 -r 10 -x 2 "$noise" >e/runs.jsonl

# --- export ---
check "csv: a line a run, every line as long" bash -c "syslat export -f csv e | python3 -c '
import csv,sys
rows=list(csv.reader(sys.stdin)); assert len(rows)==41 and len({len(r) for r in rows})==1, rows[:2]
head=rows[0]; assert head[0]==\"id\" and float(rows[1][head.index(\"mean\")])>0 and rows[1][head.index(\"mean_unit\")]==\"us\"'"
check "ministat: 20 values, as the records have them" bash -c "test \$(syslat export -f ministat --arm arm1 e | wc -l) -eq 20"
one_line_error "ministat of two arms" 2 "choose with --arm" syslat export -f ministat e
check "ministat reads it" bash -c "! command -v ministat >/dev/null || syslat export -f ministat --arm arm0 e | ministat -n /dev/stdin"
check "gobench is as the golden file" diff <(syslat export -f gobench --metric mean,max e | head -8) "$source_root/tests/data/export.gobench.golden"
check "kcidb: the published rules of its fields hold" bash -c "syslat export -f kcidb --branch next e | python3 -c '
import json,re,sys
r=json.load(sys.stdin); assert set(r)=={\"version\",\"checkouts\",\"builds\",\"tests\"} and r[\"version\"]=={\"major\":5,\"minor\":0}
ident=re.compile(r\"^[a-z0-9_]+:.*\$\"); origin=re.compile(r\"^[a-z0-9_]+\$\"); path=re.compile(r\"^([a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*)?\$\")
builds={b[\"id\"] for b in r[\"builds\"]}; checkouts={c[\"id\"] for c in r[\"checkouts\"]}
for c in r[\"checkouts\"]: assert ident.match(c[\"id\"]) and origin.match(c[\"origin\"]) and set(c)<={\"id\",\"origin\",\"git_commit_hash\",\"git_commit_name\",\"git_repository_branch\"}
for b in r[\"builds\"]: assert ident.match(b[\"id\"]) and b[\"checkout_id\"] in checkouts and set(b)<={\"id\",\"origin\",\"checkout_id\",\"architecture\",\"comment\"}
assert len({t[\"id\"] for t in r[\"tests\"]})==len(r[\"tests\"])>=160
for t in r[\"tests\"]:
    assert ident.match(t[\"id\"]) and origin.match(t[\"origin\"]) and t[\"build_id\"] in builds and path.match(t[\"path\"]) and t[\"status\"]==\"DONE\"
    assert isinstance(t[\"number\"][\"value\"],float) and set(t[\"number\"])<={\"value\",\"unit\",\"prefix\"} and t[\"duration\"]==8.0
    assert set(t)<={\"id\",\"origin\",\"build_id\",\"path\",\"status\",\"number\",\"start_time\",\"duration\",\"environment\"}'"
one_line_error "kcidb: an origin that is none" 2 "small letters" syslat export -f kcidb --origin "My CI" e
expect "otava: a time, a commit, metrics" 0 "^2023-11-14T22:13:20.000Z,100000000000,,0000000000abc000,gem_syslatency,arm0,[0-9.]+$" syslat export -f otava --metric mean e
check "-o FILE" bash -c "syslat export -f csv -o out.csv e && test \$(wc -l <out.csv) -eq 41"
one_line_error "an unknown format" 2 "csv, ministat, gobench, kcidb, otava" syslat export -f xml e
one_line_error "no format" 2 "--format NAME" syslat export e
one_line_error "nothing there" 1 "missing" syslat export -f csv missing

# --- import ---
expect "ministat: a run a number" 0 "mini: 120 runs" syslat import -o mini --arm tip --metric mean --unit us "$noise"
expect "and compare takes them" 0 "^x tip-mean.txt" syslat compare --metric mean mini
check "the values are the same" diff <(syslat export -f ministat --metric mean mini | awk '{ print $1 + 0 }') <(awk '{ print $1 + 0 }' "$noise")
expect "history takes them, once" 0 "120 runs added" syslat history add --db h.db --commit v1 mini
syslat import -o mini2 --arm tip --metric mean --unit us --started 2026-01-01T00:00:00Z "$noise" >/dev/null
one_line_error "one id, another content (another start)" 1 "another content" syslat history add --db h.db mini2
cat >igt.txt <<'T'
IGT-Version: 1.27.1 (x86_64)
gem_syslatency: cycles=1234, latency mean=17.326us max=8942us
gem_syslatency: cycles=1300, latency mean=18.001us max=9000us
T
expect "IGT: a run a line" 0 "igt: 2 runs" syslat import -o igt igt.txt
check "IGT: its three numbers" bash -c "syslat export -f csv --metric igt-cycles,igt-mean,igt-max igt | grep -q ',1234,count,17.326,us,8942,us'"
cat >cyclic.txt <<'T'
# Histogram
000000 000000	000000
000001 000010	000000
000002 000080	000095
000005 000010	000005
# Total: 000000100 000000100
# Min Latencies: 00001 00002
# Avg Latencies: 00002 00002
# Max Latencies: 00005 00005
# Histogram Overflows: 00000 00000
# Histogram Overflow at cycle number:
T
expect "cyclictest: one run" 0 "cyclic: 1 runs" syslat import -o cyclic cyclic.txt
check "cyclictest: mean, median and maximum of the bins" bash -c "syslat export -f csv --metric mean,p50,max cyclic | grep -q ',2.175,us,2,us,5,us'"
sed -i 's/Overflows: 00000/Overflows: 00003/' cyclic.txt
syslat import -o over cyclic.txt >/dev/null
check "cyclictest with overflows: no mean is made up" bash -c "! grep -q '\"mean\"' over/runs.jsonl && grep -q 'beyond the histogram' over/runs.jsonl"
cat >rtla.txt <<'T'
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:05
Index   IRQ-000   Thr-000   IRQ-001   Thr-001
0            90         0        80         0
3            10        95        20        90
9             0         5         0        10
over:         0         0         0         0
count:      100       100       100       100
min:          0         3         0         3
avg:          0         3         0         3
max:          3         9         3        11
ALL:        IRQ       Thr
T
expect "rtla: one run" 0 "rtla: 1 runs" syslat import -o rtla rtla.txt
check "rtla: the threads' latency" bash -c "syslat export -f csv --metric mean,p50,max rtla | grep -q ',3.45,us,3,us,11,us'"
if command -v cyclictest >/dev/null && cyclictest -q -D 1 -h 1000 >real.txt 2>/dev/null; then
	expect "a real cyclictest's histogram" 0 "real: 1 runs" syslat import -o real real.txt
else
	skip "a real cyclictest's histogram" "cyclictest does not run here"
fi
echo "hello world" >text
one_line_error "an unknown text" 1 "text: neither numbers nor output" syslat import -o x text
printf '1\n2\nx\n' >bad
one_line_error "a bad line" 1 'bad: line 3: "x" is not a finite number' syslat import -o x bad
check "nothing was made" test ! -e x
one_line_error "a folder that has runs" 1 "is there already" syslat import -o mini "$noise"
one_line_error "no folder" 2 "-o DIR is wanted" syslat import "$noise"

# --- the page ---
check "report.html of an experiment" syslat report e -o r.html
check "it is whole, and asks for nothing from elsewhere" python3 - <<'PY'
import html.parser, re
text = open("r.html", encoding="utf-8").read()
assert not re.search(r'(src|href)\s*=\s*"(?!data:|#)', text) and "<script" not in text and "url(" not in text and "@import" not in text
void = {"meta", "link", "circle", "line", "rect", "polyline", "br"}
class Check(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(); self.open = []; self.headings = []; self.pictures = []
    def handle_starttag(self, tag, attributes):
        if tag in ("h1", "h2", "h3"): self.headings.append(int(tag[1]))
        if tag == "svg": self.pictures.append(dict(attributes))
        if tag not in void: self.open.append(tag)
    def handle_startendtag(self, tag, attributes): pass
    def handle_endtag(self, tag):
        if tag in ("li", "p", "td", "th", "tr"):
            while self.open[-1] != tag: self.open.pop()
        assert self.open.pop() == tag, (tag, self.getpos())
c = Check(); c.feed(text); assert not c.open, c.open
assert c.headings[0] == 1 and c.headings.count(1) == 1 and all(b - a <= 1 for a, b in zip(c.headings, c.headings[1:]))
assert len(c.pictures) == 4 and all(p["role"] == "img" and "median" in p["aria-label"] for p in c.pictures)
assert text.index("Verdicts") < text.index("<svg") < text.index("<table") < text.index("Validity") < text.index("To reproduce")
assert text.count("<circle") == 80
def luminance(colour):
    if len(colour) == 4: colour = "#" + "".join(2 * c for c in colour[1:])
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
light, dark = re.findall(r":root\{(--text.*?)\}", text)[:2]
for theme in (light, dark):
    colours = dict(re.findall(r"--(\w+):(#\w+)", theme))
    for name in ("text", "soft", "bad", "good", "c0", "c1", "c2", "c3", "c4", "c5"):
        a, b = sorted((luminance(colours[name]), luminance(colours["page"])))
        assert (b + 0.05) / (a + 0.05) >= 4.5, (name, colours[name], (b + 0.05) / (a + 0.05))
PY
sed 's/"validity": *{[^}]*}/"validity":{"verdict":"suspect","reasons":["Δpgscan_anon 123 for 456 pages: measure longer"]}/' e/runs.jsonl |
	awk '{ sub(/pgscan_anon 123/, "pgscan_anon " NR); print }' >doubtful.jsonl
check "runs of one reason are told together" bash -c "syslat report doubtful.jsonl -o doubtful.html &&
	test \$(grep -c 'measure longer' doubtful.html) = 2 && test \$(grep -c ' and 19 like it: suspect' doubtful.html) = 2"
sed 's/"arm1"/"<b>\&\\"arm"/g' e/runs.jsonl >evil.jsonl
check "names of arms are no markup" bash -c "syslat report evil.jsonl -o evil.html && ! grep -q '<b>' evil.html && grep -q '&lt;b&gt;&amp;&quot;arm' evil.html"
browser=$(command -v chromium || command -v google-chrome || true)
if [ -n "$browser" ]; then
	for width in 380 1400; do
		sed 's|</main>|<script>document.title=[document.documentElement.scrollWidth,innerWidth].join(" ")</script></main>|' r.html >probe.html
		echo "<iframe id=f src=probe.html style='width:${width}px;height:900px;border:0'></iframe><pre id=o></pre><script>onload=()=>{o.textContent='page '+f.contentDocument.title}</script>" >frame.html
		seen=$(timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-background-networking --allow-file-access-from-files \
			--user-data-dir="$work/browser" --window-size=1500,1000 --dump-dom "file://$work/frame.html" 2>/dev/null | grep -o 'page [0-9]* [0-9]*' | head -1)
		check "in a browser at $width px nothing overflows ($seen)" test "$(echo "$seen" | awk '$2 > 0 && $2 <= $3 { print "yes" }')" = yes
	done
else
	skip "in a browser nothing overflows" "chromium is not installed"
fi

# --- pictures ---
"$build/tests/history/make_history" -n 400 -r 5 -s 40 -f 3 -x 5 "$noise" >series.jsonl
syslat history add --db p.db series.jsonl >/dev/null
expect "history in the terminal: marks and the new level" 0 "x: median of a commit, |: a new level" syslat history plot --db p.db --series 1
check "a plot in the terminal" bash -c "syslat plot e | grep -q 'M.*A\|A.*M'"
one_line_error "a kind that needs a file" 2 "give -o FILE.svg or FILE.png" syslat plot --kind ecdf e
one_line_error "an ending that is no picture" 2 "ends in .svg or .png" syslat plot -o x.pdf e
one_line_error "no series" 2 "give --series N" syslat history plot --db p.db
check "history export: a line a value" bash -c "test \$(syslat history export --db p.db --metric mean | wc -l) -eq 401"
if command -v gnuplot >/dev/null; then
	for kind in runs ecdf percentiles heat; do
		check "--kind $kind as SVG, script and data kept" bash -c "syslat plot --kind $kind -o pic/$kind.svg e 2>/dev/null || { mkdir -p pic && syslat plot --kind $kind -o pic/$kind.svg e; }; python3 -c 'import xml.etree.ElementTree as e; e.parse(\"pic/$kind.svg\")' && test -s pic/$kind.gp && test -s pic/$kind.dat"
	done
	check "the script makes the picture anew" bash -c "cd pic && rm runs.svg && gnuplot runs.gp && test -s runs.svg"
	check "PNG" bash -c "syslat history plot --db p.db --series 1 -o h.png && head -c 8 h.png | grep -q PNG"
	check "a name that is no gnuplot" bash -c "sed 's/\"arm1\"/\"\`touch owned\`\\\\\"x\"/g' e/runs.jsonl >odd.jsonl; syslat plot -o odd.svg odd.jsonl && test ! -e owned"
	one_line_error "causes that nobody collected" 1 "no record has causes" syslat plot --kind causes -o c.svg e
else
	skip "pictures" "gnuplot is not installed"
fi
finish
