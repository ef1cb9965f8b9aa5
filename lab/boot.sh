# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by scripts/lab: a kernel, QEMU, and what comes back.

# Modules of Debian's kernel that the machine gets, with what they need.
lab_modules="vgem zsmalloc lzo lz4 zram"
lab_modules_host="virtio_pci virtio-gpu"       # devices that virtual time does without
lab_modules_files="crc32c_generic loop ext4" # for --root-files

# Downloads a Debian package into the cache once: its path on standard output.
lab_package() {
	local name=$1 found
	mkdir -p "$cache/packages"
	found=$(find "$cache/packages" -name "${name}_*.deb" | sort | tail -1)
	if [ -z "$found" ]; then
		command -v apt-get >/dev/null || return 1
		# Not as apt's own user, which cannot write here.
		(cd "$cache/packages" && apt-get -o APT::Sandbox::User=root download -q "$name" >"$cache/download.log" 2>&1) ||
			{ (apt-get update -q && cd "$cache/packages" &&
				apt-get -o APT::Sandbox::User=root download -q "$name") >"$cache/download.log" 2>&1 || return 1; }
		found=$(find "$cache/packages" -name "${name}_*.deb" | sort | tail -1)
	fi
	[ -n "$found" ] && echo "$found"
}

# Debian's kernel unpacked in the cache: its folder on standard output.
lab_debian_kernel() {
	local package folder file release
	for folder in "$cache"/debian/*/; do
		[ -e "$folder/ready" ] && { echo "${folder%/}" && return 0; }
	done
	command -v apt-cache >/dev/null || return 1
	# A new machine has no package lists.
	apt-cache show linux-image-amd64 >/dev/null 2>&1 || apt-get update -q >/dev/null 2>&1 || return 1
	package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p')
	package=${package%%$'\n'*}
	[ -n "$package" ] || return 1
	file=$(lab_package "$package") || return 1
	release=${package#linux-image-}
	folder=$cache/debian/$release
	rm -rf "$folder" && mkdir -p "$folder"
	dpkg-deb -x "$file" "$folder" && busybox depmod -b "$folder" "$release" && touch "$folder/ready"
	echo "$folder"
}

# Sets kernel_image, and kernel_folder for one that has modules.
lab_find_kernel() {
	local wanted=$1
	kernel_folder=
	case "$wanted" in
	"")
		kernel_folder=$(lab_debian_kernel) || die 77 "Debian's kernel cannot be had (apt-get download linux-image-...; see $cache/download.log): use --kernel NAME=PATH"
		kernel_image=$(echo "$kernel_folder"/boot/vmlinuz-*)
		;;
	*=*) kernel_image=${wanted#*=} ;;
	*) kernel_image=$cache/kernels/$wanted ;;
	esac
	[ -r "$kernel_image" ] || die 77 "there is no kernel $kernel_image: build the lab's with \"scripts/lab kernel\""
}

# KVM may exist and hang: it counts when this kernel gets to its panic for want of a root in 8 seconds.
lab_choose_accelerator() {
	local answer key
	key="$cache/kvm-$(cat /proc/sys/kernel/random/boot_id)"
	if [ ! -e "$key" ]; then
		answer=tcg,thread=multi
		if [ -w /dev/kvm ] && timeout -k 1 8 qemu-system-x86_64 -accel kvm -m 256 -kernel "$kernel_image" \
			-append "panic=-1" -display none -serial none -monitor none -no-reboot -nodefaults </dev/null >/dev/null 2>&1; then
			answer=kvm
		fi
		mkdir -p "$cache"
		rm -f "$cache"/kvm-*
		echo "$answer" >"$key"
	fi
	cat "$key"
}

# QEMU's and the kernel's part of the clock. Virtual: QEMU counts instructions, each is 2 ns (docs/lab.md). The CPU
# model is pinned: what it offers decides how the kernel clears a page, and each iteration counts.
lab_clock_words() {
	if [ "$clock" = host ]; then
		machine_words=(-accel "$accelerator" -smp "$cpus" -device virtio-gpu-pci)
		kernel_words=""
		return 0
	fi
	machine_words=(-accel tcg,thread=single -icount "shift=1,sleep=off" -rtc base=2026-01-01,clock=vm -smp 1
		-cpu qemu64 -seed "$seed")
	kernel_words="nokaslr page_alloc.shuffle=1 clocksource=tsc tsc=reliable syslat.clock=virtual syslat.ns_per_instruction=2 syslat.seed=$seed"
}

# Virtual time unless the host's hardware runs the machine, or --clock says otherwise.
lab_choose_clock() {
	case "$clock" in
	virtual | host | "") ;;
	*) die 2 "--clock takes virtual or host, not '$clock'" ;;
	esac
	[ "$clock" = virtual ] || accelerator=$(lab_choose_accelerator)
	if [ -z "$clock" ]; then
		clock=virtual
		[ "$accelerator" != kvm ] || clock=host
	fi
	if [ "$clock" = virtual ] && [ "${cpus:-1}" != 1 ]; then
		die 2 "--cpus $cpus: virtual time has one CPU (see docs/lab.md): --clock host takes more"
	fi
	case "$seed" in
	"" | *[!0-9]*) die 2 "--seed takes a whole number, not '$seed'" ;;
	esac
	case "${jobs:-1}" in
	0 | *[!0-9]*) die 2 "-j takes a number from 1, not '$jobs'" ;;
	esac
	[ -z "$root_files" ] || numfmt --from=iec "$root_files" >/dev/null 2>&1 ||
		die 2 "--root-files takes a size such as 1G, not '$root_files'"
	[ "$clock" = host ] && cpus=${cpus:-2} limit=${limit:-300} || cpus=1 limit=${limit:-1200}
	jobs=${jobs:-$(nproc)} memory=${memory:-1G} reps=${reps:-3}
}

lab_qemu() {
	local work=$1
	timeout -k 2 "$limit" qemu-system-x86_64 "${machine_words[@]}" -m "$memory" -nodefaults -no-reboot \
		-display none -monitor none -vga none -device i6300esb \
		-kernel "$kernel_image" -initrd "$work/initramfs" -append "console=ttyS0 quiet panic=-1 $kernel_words ${append:-}" \
		-serial "file:$work/console" -serial "file:$work/stdout" -serial "file:$work/stderr" \
		-serial "file:$work/archive" </dev/null 2>"$work/qemu"
}

lab_words=()

# Parses the options that boot and matrix share; what is left is in "rest".
lab_options() {
	kernel="" memory="" cpus="" clock="" seed=${SYSLATENCY_BLOCK:-1} jobs="" padding="" same=0 again=${SYSLATENCY_LAB_AGAIN:-0} append="" root_files="" out="" limit="" reps="" files=() kernels=() rest=() arm_names=() arm_words=()
	while [ $# -gt 0 ]; do
		case "$1" in
		--again | --aa)
			[ "$1" = --aa ] && same=1 || again=1
			shift
			continue
			;;
		--kernel | --memory | --cpus | --out | --file | --timeout | --reps | --clock | --seed | --append | --root-files | --padding | -j)
			[ $# -ge 2 ] || die 2 "$1 takes a value"
			;;&
		--kernel) kernel=$2 kernels+=("$2") ;;
		--memory) memory=$2 ;;
		--cpus) cpus=$2 ;;
		--clock) clock=$2 ;;
		--seed) seed=$2 ;;
		--append) append=$2 ;;
		--padding) padding=$2 ;;
		-j) jobs=$2 ;;
		--root-files) root_files=$2 ;;
		--out) out=$2 ;;
		--file) files+=("$2") ;;
		--timeout) limit=$2 ;;
		--reps) reps=$2 ;;
		--)
			shift
			rest=("$@")
			return 0
			;;
		-h | --help) usage && exit 0 ;;
		*) die 2 "unknown argument '$1': see scripts/lab --help" ;;
		esac
		shift 2
	done
}

lab_need() {
	local program
	for program in qemu-system-x86_64 busybox cpio; do
		command -v "$program" >/dev/null || die 77 "$program is not installed: scripts/setup --lab"
	done
	[ -z "$root_files" ] || PATH=$PATH:/usr/sbin:/sbin command -v debugfs >/dev/null ||
		die 77 "debugfs is not installed (package e2fsprogs): scripts/setup --lab"
	busybox --list | grep -x depmod >/dev/null || die 77 "this busybox has no depmod: install busybox-static"
	[ -d "$build/benchmarks" ] || die 77 "$build is not built: meson setup build && ninja -C build"
}

# What decides a run in virtual time, to the last digit.
lab_run_key() {
	local work=$1
	{
		qemu-system-x86_64 --version
		echo "$memory ${machine_words[*]} $kernel_words ${append:-}"
		sha256sum <"$kernel_image"
		sha256sum <"$work/initramfs"
	} | sha256sum | cut -d' ' -f1
}

# What a run was made from, for "lab profile": where, seed, whether a record was asked for, words of "lab boot".
lab_note_run() {
	[ "${#lab_words[@]}" -eq 0 ] || lab_quote "$PWD" "$seed" "${SYSLATENCY_RECORD:+1}" "${lab_words[@]}" >"$1/run"
}

# Keeps $answer as $1, whole or not at all; the run's own answer stands where it cannot be kept (a full disk).
lab_keep() {
	local kept=$1 new
	lab_note_run "$answer"
	mkdir -p "$cache/results" && new=$(mktemp -d "$cache/results/.new.XXXXXX") || return 0
	if cp -r "$answer/." "$new/" && rm -rf "$kept" && mv -T "$new" "$kept" 2>/dev/null; then
		answer=$kept
	else
		rm -rf "$new" # or another boot of the same run was quicker: its answer is the same
	fi
}

# Boots, unless this very run is kept from before; leaves what came back in $answer.
lab_answer() {
	local work=$1 kept=""
	if [ "$clock" = virtual ]; then
		kept=$cache/results/$(lab_run_key "$work")
		if [ -e "$kept/lab/status" ] && [ "$again" = 0 ]; then
			answer=$kept
			[ -e "$kept/run" ] || lab_note_run "$kept"
			return 0
		fi
	fi
	lab_qemu "$work" || true
	mkdir -p "$work/back"
	tar -x -z -f "$work/archive" -C "$work/back" 2>/dev/null && [ -s "$work/back/lab/status" ] || return 1
	mv "$work/stdout" "$work/stderr" "$work/back/"
	answer=$work/back
	[ -z "$kept" ] || lab_keep "$kept"
}

# One machine from start to end; files in "$out". Returns the command's status.
lab_run() {
	local work answer status
	work=$(mktemp -d "${TMPDIR:-/tmp}/syslatency-lab.XXXXXX")
	# shellcheck disable=SC2064
	trap "rm -rf '$work'" EXIT
	lab_clock_words
	lab_make_initramfs "$work" "$@"
	if ! lab_answer "$work"; then
		cat "$work/stdout" 2>/dev/null || true
		cat "$work/stderr" >&2 2>/dev/null || true
		tail -n 15 "$work/console" "$work/qemu" 2>/dev/null | tr -d '\r' | sed 's/^/lab: console: /' >&2 || true
		die 1 "the machine ended without an answer (panic, or more than $limit s)"
	fi
	cat "$answer/stdout"
	cat "$answer/stderr" >&2
	if [ -n "$out" ]; then
		mkdir -p "$out"
		cp -r "$answer/out/." "$out/"
		cp "$answer/lab/dmesg" "$out/dmesg"
	fi
	if [ -n "${SYSLATENCY_RECORD:-}" ] && [ -e "$answer/lab/record" ]; then
		cp "$answer/lab/record" "$SYSLATENCY_RECORD"
	fi
	status=$(cat "$answer/lab/status")
	rm -rf "$work"
	trap - EXIT
	return "$status"
}

lab_boot() {
	lab_words=("$@")
	lab_options "$@"
	[ "${#rest[@]}" -gt 0 ] || die 2 "boot takes a command after --"
	lab_need
	lab_find_kernel "$kernel"
	lab_choose_clock
	lab_run "${rest[@]}"
}

# The backend's tests and those of memory groups (cgroup v2 there), TAP on standard output.
lab_test() {
	[ $# -eq 0 ] || die 2 "test takes no argument"
	lab_options
	limit=170
	lab_need
	[ -x "$build/tests/backends/test_drm_dumb" ] || die 77 "the tests are not built (libdrm is missing?)"
	lab_find_kernel ""
	clock=host
	lab_choose_clock
	lab_run sh -c 'export CMOCKA_MESSAGE_OUTPUT=TAP; test_drm_dumb; status=$?; undo_test_group || status=$?; exit $status'
}
