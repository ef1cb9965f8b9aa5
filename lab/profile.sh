# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by scripts/lab: where the instructions of one delay went, by a run in virtual time that is booted once more with
# our plugin of QEMU (lab/profile.c).

# The kept answer that holds the record in $1; its folder in kept_answer, the record's path there in kept_record.
lab_find_record() {
	local file
	for file in "$cache"/results/*/lab/record "$cache"/results/*/out/*.json; do
		if [ -e "$file" ] && lab_same_run "$file" "$1"; then
			kept_record=$file
			kept_answer=${file%/*/*}
			return 0
		fi
	done
	die 2 "no kept run has the record $1: give the options and the command of its run after --, as to \"lab boot\""
}

# "syslat run" adds an arm and a block to a record; what was measured stays.
lab_same_run() {
	cmp -s "$1" "$2" ||
		jq -es '(.[0] | [.worst, .latency, .histogram, .started]) == (.[1] | [.worst, .latency, .histogram, .started])' \
			"$1" "$2" >/dev/null 2>&1
}

# Sets delay_index, delay_ns, delay_text and delay_last from the worst delay number $2 of record $1.
lab_read_delay() {
	local line measure step
	line=$(jq -r --argjson n "$2" '[.environment.clock, .measure, .environment.ns_per_instruction, (.worst | length),
		(.per_cpu | length), .worst[$n - 1].index, ((.worst[$n - 1].late_us // 0) * 1000 | round)] | map(. // "none") | join(" ")' \
		"$1" 2>/dev/null) || die 2 "$1 is not one record of a run"
	read -r delay_clock measure step delay_of threads delay_index delay_ns <<<"$line"
	[ "$delay_clock" = virtual ] || die 2 "the times of $1 are not virtual: a profile boots the very same run again"
	[ "$2" -le "$delay_of" ] || die 2 "--worst $2: the record has $delay_of of the worst delays"
	[ "$delay_index" != none ] || die 2 "the record was made before records told which sample a delay was: measure again"
	[ "$threads" = 1 ] || die 2 "the run had $threads sampling threads: a profile takes one"
	delay_step=$step
	delay_text="$measure, $(awk -v ns="$delay_ns" 'BEGIN { printf "%.3f us", ns / 1000 }')"
	# A huge page is timed from mark to mark; a wakeup from the expiry, so many instructions before the end.
	delay_last=0
	[ "$measure" != wakeup ] || delay_last=$((delay_ns / step))
}

# The kernel's functions and those of its modules, into the file $1: one boot more, kept like any other.
lab_symbols() {
	local work
	work=$(mktemp -d "$1.XXXXXX")
	unset SYSLATENCY_RECORD
	files=() padding="" lab_words=()
	# Without modules each function has its place from the start.
	[ -n "$kernel_folder" ] || { seed=1 memory=256M append="" root_files=""; }
	lab_clock_words
	lab_make_initramfs "$work" cp /proc/kallsyms .
	lab_answer "$work" && grep -i ' [tw] ' "$answer/out/kallsyms" >"$1"
}

# Where the time went: from the folded stacks, the line of the plugin about the window, and the delay.
lab_profile_table() {
	awk -v step="$delay_step" -v delay_ns="$delay_ns" -v last="$delay_last" -v window="$2" '
	function line(count, what) { printf "%7.2f %%  %12d  %12.3f us  %s\n", 100 * count / all, count, count * step / 1000, what }
	function rank(counts, most, title,    n, name, best) {
		print title
		for (n = 0; n < most; n++) {
			best = ""
			for (name in counts)
				if (!(name in shown) && (best == "" || counts[name] > counts[best] || (counts[name] == counts[best] && name < best)))
					best = name
			if (best == "" || counts[best] < all / 1000)
				break
			shown[best] = 1
			line(counts[best], best)
		}
		split("", shown)
		print ""
	}
	{
		count = $NF
		sub(/ [0-9]+$/, "")
		depth = split($0, frames, ";")
		who = frames[1]
		for (i = 2; i <= depth; i++)
			if (frames[i] ~ /^(asm_sysvec_|asm_common_interrupt|asm_spurious)/)
				who = "interrupts"
		all += count
		owner[who] += count
		self[frames[depth]] += count
		split("", seen)
		for (i = 2; i <= depth; i++)
			if (!(frames[i] in seen)) {
				seen[frames[i]] = 1
				inclusive[frames[i]] += count
			}
	}
	END {
		split(window, fields, /[ =]/)
		for (i = 1; i in fields; i += 2)
			told[fields[i]] = fields[i + 1]
		printf "%d instructions, %.3f us", all, all * step / 1000
		if (told["halts"] > 0 && last > 0)
			printf "; the CPU was idle %d times, so these reach back to before the expiry", told["halts"]
		else if (told["halts"] > 0)
			printf "; the CPU was idle %d times, for the other %.3f us", told["halts"], (delay_ns - all * step) / 1000
		print "\n\n  share  instructions  virtual time"
		rank(owner, 12, "by whom (interrupts: of whoever they came to)")
		rank(self, 20, "by function, itself")
		rank(inclusive, 40, "by function, with what it called")
	}' "$1"
}

# Boots the run of lab_options again with the plugin; the record must be the same. Files in $1 (with the initramfs).
lab_boot_profiled() {
	local work=$1 plain_record=$2 path=$3
	machine_words+=(-plugin "file=$build/lab/profile.so,symbols=$work/symbols,output=$work/profile,index=$delay_index,last=$delay_last")
	limit=$((limit * 4))
	lab_qemu "$work" || true
	mkdir -p "$work/profiled"
	tar -x -z -f "$work/archive" -C "$work/profiled" 2>/dev/null && [ -s "$work/profile.window" ] ||
		die 1 "the machine with the plugin ended without an answer: $(tail -n 1 "$work/qemu")"
	cmp -s "$work/profiled/$path" "$plain_record" ||
		die 1 "the profiled run measured something else than the plain one: its profile would be of another delay"
}

lab_profile() {
	local record="" worst=1 words=() work path folder told plain symbols
	case "${1:-}" in
	"" | -*) ;;
	*) record=$1 && shift ;;
	esac
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		if [ "$1" = --worst ]; then
			[ $# -ge 2 ] || die 2 "--worst takes a value"
			worst=$2 && shift
		else
			words+=("$1")
		fi
		shift
	done
	case "$worst" in
	"" | 0* | *[!0-9]*) die 2 "--worst takes a whole number from 1, not '$worst'" ;;
	esac
	words+=("$@")
	lab_words=("${words[@]}")
	lab_options "${words[@]}"
	folder=${out:-.}
	[ -z "$record" ] || [ -r "$record" ] || die 2 "there is no record $record"
	[ -n "$record" ] || [ "${#rest[@]}" -gt 0 ] || die 2 "profile takes a record, or a command after --"
	command -v jq >/dev/null || die 77 "jq is not installed: scripts/setup --lab"
	[ -z "$record" ] || lab_read_delay "$record" "$worst"
	mkdir -p "$folder"
	folder=$(cd "$folder" && pwd)
	[ -z "$record" ] || record=$(realpath "$record")
	if [ -n "$record" ] && [ "${#rest[@]}" -eq 0 ]; then
		lab_find_record "$record"
		[ -e "$kept_answer/run" ] || die 2 "the run of $record was kept without its command: give it after --"
		eval "words=($(cat "$kept_answer/run"))"
		cd "${words[0]}" || die 2 "${words[0]}, from where the run was started, is not there"
		if [ -n "${words[2]}" ]; then export SYSLATENCY_RECORD=/dev/null; else unset SYSLATENCY_RECORD; fi
		SYSLATENCY_BLOCK=${words[1]} lab_options "${words[@]:3}"
		lab_words=("${words[@]:3}")
	elif [ -z "$record" ]; then
		export SYSLATENCY_RECORD=/dev/null
	fi
	lab_need
	[ -e "$build/lab/profile.so" ] || die 77 "the plugin is not built: ninja -C build"
	lab_find_kernel "$kernel"
	clock=${clock:-virtual}
	lab_choose_clock
	[ "$clock" = virtual ] || die 2 "a profile needs virtual time: --clock virtual"

	work=$(mktemp -d "${TMPDIR:-/tmp}/syslatency-lab.XXXXXX")
	# shellcheck disable=SC2064
	trap "rm -rf '$work'" EXIT
	lab_clock_words
	lab_make_initramfs "$work" "${rest[@]}"
	(lab_symbols "$work/symbols") &
	symbols=$!
	lab_answer "$work" || answer=""
	wait "$symbols" || die 1 "the kernel's functions cannot be read from its /proc/kallsyms"
	[ -n "$answer" ] || die 1 "the machine ended without an answer: try it with \"lab boot\" first"
	if [ -n "$record" ]; then
		path=$(lab_path_of_record "$record") || die 1 "this run gives another record than $record: programs, kernel, QEMU or options differ from its run's"
	else
		path=lab/record
		[ -e "$answer/$path" ] || die 2 "the command leaves no record: it must be a run of gem_syslatency, measure wakeup or thp"
		lab_read_delay "$answer/$path" "$worst"
	fi
	plain=$answer
	lab_boot_profiled "$work" "$plain/$path" "$path"
	told=$(cat "$work/profile.window")
	case "$told" in
	"loops=1 "*) ;;
	*) die 2 "the command has more than one sampling loop ($told): a profile takes one measurement a boot" ;;
	esac
	[ -s "$work/profile.folded" ] || die 1 "the plugin did not see the sample ($told)"
	cp "$work/profile.folded" "$folder/delay.folded"
	cp "$plain/$path" "$folder/record.json"
	echo "delay $worst of $delay_of: $delay_text; sample $delay_index; $(basename "$kernel_image"), seed $seed"
	lab_profile_table "$work/profile.folded" "$told"
	echo "folded stacks: $folder/delay.folded"
}

# The path of the record within the run's answer.
lab_path_of_record() {
	local file
	for file in lab/record out/*.json; do
		for file in "$answer"/$file; do
			[ ! -e "$file" ] || ! lab_same_run "$file" "$1" || { echo "${file#"$answer"/}" && return 0; }
		done
	done
	return 1
}
