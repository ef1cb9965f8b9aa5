# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by scripts/lab: a kernel, an initramfs, QEMU, and what comes back.

# Modules of Debian's kernel that the machine gets, with what they need.
lab_modules="virtio_pci virtio-gpu vgem zsmalloc lzo lz4 zram"

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

# A file at the same path below $root, and the libraries that it needs.
lab_add_program() {
	local root=$1 file=$2 target=$3 library
	mkdir -p "$root/$(dirname "$target")"
	cp "$file" "$root/$target"
	ldd "$file" 2>/dev/null | grep -oE '/[^ ]+' | while read -r library; do
		[ -e "$root$library" ] || { mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"; }
	done
}

lab_add_module() {
	local root=$1 folder=$2 path=$3 release needed
	release=$(basename "$folder")
	[ ! -e "$root/lib/modules/$release/$path" ] || return 0
	mkdir -p "$root/lib/modules/$release/$(dirname "$path")"
	cp "$folder/lib/modules/$release/$path" "$root/lib/modules/$release/$path"
	needed=$(grep "^$path:" "$folder/lib/modules/$release/modules.dep")
	echo "$needed" >>"$root/lib/modules/$release/modules.dep"
	for path in ${needed#*:}; do
		lab_add_module "$root" "$folder" "$path"
	done
}

lab_add_modules() {
	local root=$1 folder=$2 module path
	for module in $lab_modules; do
		path=$(grep -m1 "/$module.ko:" "$folder/lib/modules/$(basename "$folder")/modules.dep" | cut -d: -f1) || true
		if [ -n "$path" ]; then
			lab_add_module "$root" "$folder" "$path"
			echo "$module" >>"$root/modules"
		fi
	done
}

# The words as one line that a shell reads back unchanged.
lab_quote() {
	local word
	for word in "$@"; do
		printf "'%s' " "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")"
	done
	echo
}

lab_make_initramfs() {
	local work=$1 root=$1/root program file
	shift
	mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,out,etc,usr/local/bin,var/tmp,lab}
	cp "$(command -v busybox)" "$root/bin/busybox"
	for program in $(busybox --list); do
		[ "$program" = busybox ] || ln -sf busybox "$root/bin/$program"
	done
	echo 'root:x:0:0:root:/tmp:/bin/sh' >"$root/etc/passwd"
	echo 'root:x:0:' >"$root/etc/group"
	cp "$top/lab/init" "$root/init"
	for file in "$build"/benchmarks/* "$build"/tools/* "$build"/tests/backends/test_drm_dumb \
		"$build"/tests/undo_test_group; do
		[ -f "$file" ] && [ -x "$file" ] && lab_add_program "$root" "$file" "usr/local/bin/$(basename "$file")"
	done
	[ -z "$kernel_folder" ] || lab_add_modules "$root" "$kernel_folder"
	for file in "${files[@]}"; do
		cp -r "$file" "$root/out/"
	done
	# A record that "syslat run" asks for is written in the machine and brought back.
	[ -z "${SYSLATENCY_RECORD:-}" ] || echo 'export SYSLATENCY_RECORD=/lab/record' >"$root/command"
	lab_quote "$@" >>"$root/command"
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initramfs"
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

lab_qemu() {
	local work=$1
	timeout -k 2 "$limit" qemu-system-x86_64 -accel "$accelerator" -m "$memory" -smp "$cpus" -nodefaults -no-reboot \
		-display none -monitor none -vga none -device virtio-gpu-pci \
		-kernel "$kernel_image" -initrd "$work/initramfs" -append "console=ttyS0 quiet panic=-1 ${append:-}" \
		-serial "file:$work/console" -serial "file:$work/stdout" -serial "file:$work/stderr" \
		-serial "file:$work/archive" </dev/null 2>"$work/qemu"
}

# Parses the options that boot and matrix share; what is left is in "rest".
lab_options() {
	kernel="" memory=1G cpus=2 out="" limit=300 reps=3 files=() kernels=() rest=()
	while [ $# -gt 0 ]; do
		case "$1" in
		--kernel | --memory | --cpus | --out | --file | --timeout | --reps)
			[ $# -ge 2 ] || die 2 "$1 takes a value"
			;;&
		--kernel) kernel=$2 kernels+=("$2") ;;
		--memory) memory=$2 ;;
		--cpus) cpus=$2 ;;
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
	busybox --list | grep -x depmod >/dev/null || die 77 "this busybox has no depmod: install busybox-static"
	[ -d "$build/benchmarks" ] || die 77 "$build is not built: meson setup build && ninja -C build"
}

# One machine from start to end; files in "$out". Returns the command's status.
lab_run() {
	local work status
	work=$(mktemp -d "${TMPDIR:-/tmp}/syslatency-lab.XXXXXX")
	# shellcheck disable=SC2064
	trap "rm -rf '$work'" EXIT
	lab_make_initramfs "$work" "$@"
	lab_qemu "$work" || true
	cat "$work/stdout" 2>/dev/null || true
	cat "$work/stderr" >&2 2>/dev/null || true
	mkdir -p "$work/back"
	if ! tar -x -z -f "$work/archive" -C "$work/back" 2>/dev/null || [ ! -s "$work/back/lab/status" ]; then
		tail -n 15 "$work/console" "$work/qemu" 2>/dev/null | tr -d '\r' | sed 's/^/lab: console: /' >&2 || true
		die 1 "the machine ended without an answer (panic, or more than $limit s)"
	fi
	if [ -n "$out" ]; then
		mkdir -p "$out"
		cp -r "$work/back/out/." "$out/"
		cp "$work/back/lab/dmesg" "$out/dmesg"
	fi
	if [ -n "${SYSLATENCY_RECORD:-}" ] && [ -e "$work/back/lab/record" ]; then
		cp "$work/back/lab/record" "$SYSLATENCY_RECORD"
	fi
	status=$(cat "$work/back/lab/status")
	rm -rf "$work"
	trap - EXIT
	return "$status"
}

lab_boot() {
	lab_options "$@"
	[ "${#rest[@]}" -gt 0 ] || die 2 "boot takes a command after --"
	lab_need
	lab_find_kernel "$kernel"
	accelerator=$(lab_choose_accelerator)
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
	accelerator=$(lab_choose_accelerator)
	lab_run sh -c 'export CMOCKA_MESSAGE_OUTPUT=TAP; test_drm_dumb; status=$?; undo_test_group || status=$?; exit $status'
}
