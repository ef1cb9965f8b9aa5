# shellcheck shell=bash disable=SC2154
# Sourced by scripts/lab: the experiment over the lab's kernels, one boot a run.

# What is measured when no command is given: huge pages beside an anonymous writer that swaps to zram, while dumb
# buffers are held pinned in the same memory group. "{variant}" becomes the label of the arm's kernel.
lab_matrix_command() {
	# shellcheck disable=SC2054 # commas of one word
	rest=(gem_syslatency -t 10 --measure thp --pace 10ms --backend drm-dumb --variant '{variant}'
		--load gem,swap --limit 320M --footprint 128M --swap zram:1G)
}

# The --variant that a kernel of this name makes; the verdict of a run contradicts it when it is wrong.
lab_label() {
	case "$1" in
	stock | mlock) echo "$1" ;;
	*) echo mapping ;;
	esac
}

# Sets arms: NAME=KERNEL of every kernel, those of the user in the place of the lab's by that name.
lab_matrix_arms() {
	local variant own
	arms=()
	for variant in $lab_variants; do
		for own in "${kernels[@]}"; do
			[ "${own%%=*}" != "$variant" ] || continue 2
		done
		[ -e "$cache/kernels/$variant" ] ||
			die 77 "kernel $variant is not built: scripts/lab kernel (about 10 minutes on two CPUs, once)"
		arms+=("$variant=$cache/kernels/$variant")
	done
	for own in "${kernels[@]}"; do
		case "$own" in
		?*=?*) [ -r "${own#*=}" ] || die 2 "--kernel $own: there is no such file" ;;
		*) die 2 "--kernel takes NAME=PATH here" ;;
		esac
		arms+=("$own")
	done
}

lab_matrix() {
	local arm words=() machine
	lab_options "$@"
	lab_need
	[ "${#rest[@]}" -gt 0 ] || lab_matrix_command
	lab_matrix_arms
	for arm in "${arms[@]}"; do
		machine=("$top/scripts/lab" boot --kernel "$arm" --memory "$memory" --cpus "$cpus" --timeout "$limit")
		words+=(--arm "${arm%%=*}=$(lab_quote "${machine[@]}" -- "${rest[@]//'{variant}'/$(lab_label "${arm%%=*}")}")")
	done
	[ -z "$out" ] || words+=(--output "$out")
	TEST_BUILD_ROOT=$build exec "$build/tools/syslat" run --name lab-matrix --reps "$reps" --timeout "$((limit + 60))" "${words[@]}"
}
