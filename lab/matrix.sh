# shellcheck shell=bash disable=SC2154
# Sourced by scripts/lab: experiments in the lab. An arm is a name, words for "lab boot" and a command; block k gives
# every arm seed k. In virtual time runs do not disturb one another, so all of them are booted first, side by side, and
# "syslat run" finds their answers kept.

# What is measured when no command is given: huge pages beside an anonymous writer that swaps to zram, while dumb
# buffers are held pinned in the same memory group. "{variant}" becomes the label of the arm's kernel.
lab_matrix_command() {
	# shellcheck disable=SC2054 # commas of one word
	rest=(gem_syslatency -t 3 --measure thp --pace 5ms --backend drm-dumb --variant '{variant}'
		--load gem,swap --limit 200M --footprint 64M --swap zram:400M)
}

# The --variant that a kernel of this name makes; the verdict of a run contradicts it when it is wrong.
lab_label() {
	case "$1" in
	stock | mlock) echo "$1" ;;
	*) echo mapping ;;
	esac
}

# Adds an arm: lab_arm NAME BOOT-WORDS... -- COMMAND...
lab_arm() {
	local file own=()
	arm_names+=("$1")
	shift
	[ -z "$root_files" ] || own+=(--root-files "$root_files")
	[ -z "$append" ] || own+=(--append "$append")
	for file in "${files[@]}"; do
		own+=(--file "$(realpath "$file")")
	done
	arm_words+=("$(lab_quote "$top/scripts/lab" boot --clock "$clock" --memory "$memory" --cpus "$cpus" \
		--timeout "$limit" "${own[@]}" "$@")")
}

# Boots the arms' runs of every block, $jobs at a time; each leaves its answer in the cache.
lab_boot_ahead() {
	local block i total count=0 started
	started=$(date +%s)
	total=$((reps * ${#arm_names[@]}))
	for block in $(seq "$reps"); do
		for i in "${!arm_names[@]}"; do
			printf '%s\0' "SYSLATENCY_BLOCK=$block SYSLATENCY_RECORD=/dev/null SYSLATENCY_LAB_AGAIN=$again ${arm_words[i]} >/dev/null 2>&1; echo ${arm_names[i]} $block"
		done
	done | xargs -0 -P "$jobs" -n 1 bash -c | while read -r name block; do
		count=$((count + 1))
		lab_progress "$count" "$total" "$started" "$name, seed $block"
	done
	[ ! -t 2 ] || echo >&2
}

# One line that updates on a terminal; a line a run elsewhere.
lab_progress() {
	local left=$((($(date +%s) - $3) * ($2 - $1) / $1))
	printf "$([ -t 2 ] && echo '\r\033[K%s' || echo '%s\n')" \
		"lab: $1 of $2 runs ($4); about $((left / 60)) min $((left % 60)) s left" >&2
}

# Runs the experiment of the arms; what "syslat run" prints and leaves is the result.
lab_experiment() {
	local name=$1 i words=()
	shift
	[ "$clock" = host ] || lab_boot_ahead
	for i in "${!arm_names[@]}"; do
		words+=(--arm "${arm_names[i]}=${arm_words[i]}")
	done
	[ -z "$out" ] || words+=(--output "$out")
	TEST_BUILD_ROOT=$build "$build/tools/syslat" run --name "$name" --reps "$reps" --timeout "$((limit + 60))" "$@" "${words[@]}"
}

# Sets kernel_arms: NAME=PATH of every kernel, those of the user in the place of the lab's by that name.
lab_matrix_kernels() {
	local variant own
	kernel_arms=()
	for variant in $lab_variants; do
		for own in "${kernels[@]}"; do
			[ "${own%%=*}" != "$variant" ] || continue 2
		done
		[ -e "$cache/kernels/$variant" ] ||
			die 77 "kernel $variant is not built: scripts/lab kernel (about 10 minutes on two CPUs, once)"
		kernel_arms+=("$variant=$cache/kernels/$variant")
	done
	for own in "${kernels[@]}"; do
		case "$own" in
		?*=?*) [ -r "${own#*=}" ] || die 2 "--kernel $own: there is no such file" ;;
		*) die 2 "--kernel takes NAME=PATH here" ;;
		esac
		kernel_arms+=("$own")
	done
}

# The same kernel against itself. Equal bytes give equal times, so arm b has a file more that nobody reads: what is
# left between the arms is what any change of bytes does, and no claim may rest on less.
lab_matrix_same() {
	local label
	label=$(lab_label "$(basename "$kernel_image")")
	lab_arm a ${kernels[0]:+--kernel "${kernels[0]}"} -- "${rest[@]//'{variant}'/$label}"
	lab_arm b ${kernels[0]:+--kernel "${kernels[0]}"} --padding 4096 -- "${rest[@]//'{variant}'/$label}"
}

lab_matrix() {
	local arm
	lab_options "$@"
	lab_need
	[ "${#rest[@]}" -gt 0 ] || lab_matrix_command
	if [ "$same" = 1 ]; then
		[ "${#kernels[@]}" -le 1 ] || die 2 "--aa takes one --kernel, or none for Debian's"
		lab_find_kernel "${kernels[0]:-}"
		lab_choose_clock
		lab_matrix_same
	else
		lab_matrix_kernels
		kernel_image=${kernel_arms[0]#*=}
		lab_choose_clock
		for arm in "${kernel_arms[@]}"; do
			lab_arm "${arm%%=*}" --kernel "$arm" -- "${rest[@]//'{variant}'/$(lab_label "${arm%%=*}")}"
		done
	fi
	lab_experiment "lab-matrix"
}
