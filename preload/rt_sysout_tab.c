/* SPDX-License-Identifier: MIT
 *
 * rt_sysout_tab.c - every system call, and what it writes to memory
 *
 * Sizes are those of the kernel's structures on x86-64 (its include/uapi), which are part of its interface and
 * never change. A call that is not here is unknown.
 */
#include "rt_sysout_in.h"
#include "rt_sysout_nr.h"

/* clang-format off */
#define FIX(arg, size) {arg, SO_FIX, size}
#define RET(arg, size) {arg, SO_RET, size}
#define RETL(arg, j, size) {arg, SO_RETL | (j) << 4, size}
#define RETI(arg, j, size) {arg, SO_RETI | (j) << 4, size}
#define CNT(arg, j, size) {arg, SO_CNT | (j) << 4, size}

#define CALL(name, class, flags, ...) [__NR_##name] = {class, flags, {__VA_ARGS__}}
#define NONE(name) CALL(name, SO_NONE, 0, {0})
#define GONE(name) NONE(name) /* was never there or was taken out: ENOSYS */
#define STOP(name) CALL(name, SO_STOP, 0, {0})
#define MAP(name) CALL(name, SO_MAP, 0, {0})
#define SPECIAL(name) CALL(name, SO_SPECIAL, 0, {0})
#define LIST(name, ...) CALL(name, SO_LIST, 0, __VA_ARGS__)
#define FAIL(name, ...) CALL(name, SO_LIST, SO_FAIL, __VA_ARGS__) /* also when it fails */
#define LOOSE(name, ...) CALL(name, SO_LIST, SO_FAIL | SO_CLIP, __VA_ARGS__)
#define FN(name) CALL(name, SO_FN, SO_FAIL, {0})
#define SOCK(name) CALL(name, SO_SOCK, 0, {0})
#define CTL(name) CALL(name, SO_CTL, SO_FAIL, {0})

const struct so_desc so_table[] = {
	/* files */
	NONE(open), NONE(openat), NONE(openat2), NONE(creat), NONE(close), NONE(close_range), NONE(lseek),
	NONE(write), NONE(pwrite64), NONE(writev), NONE(pwritev), NONE(pwritev2), NONE(dup), NONE(dup2),
	NONE(dup3), NONE(flock), NONE(fsync), NONE(fdatasync), NONE(sync), NONE(syncfs),
	NONE(sync_file_range), NONE(fadvise64), NONE(readahead), NONE(fallocate), NONE(truncate),
	NONE(ftruncate), NONE(memfd_create), NONE(memfd_secret), NONE(tee),
	LIST(read, RETL(1, 2, 1)),
	LIST(pread64, RETL(1, 2, 1)),
	FAIL(sendfile, FIX(2, 8)),
	FAIL(splice, FIX(1, 8), FIX(3, 8)),
	FAIL(copy_file_range, FIX(1, 8), FIX(3, 8)),
	LIST(pipe, FIX(0, 8)),
	LIST(pipe2, FIX(0, 8)),
	SOCK(readv), SOCK(preadv), SOCK(preadv2), SOCK(vmsplice),
	CALL(ioctl, SO_IOCTL, SO_FAIL, {0}),
	CTL(fcntl),
	/* names */
	NONE(access), NONE(faccessat), NONE(faccessat2), NONE(chdir), NONE(fchdir), NONE(chroot),
	NONE(pivot_root), NONE(rename), NONE(renameat), NONE(renameat2), NONE(mkdir), NONE(mkdirat),
	NONE(rmdir), NONE(link), NONE(linkat), NONE(unlink), NONE(unlinkat), NONE(symlink), NONE(symlinkat),
	NONE(mknod), NONE(mknodat), NONE(chmod), NONE(fchmod), NONE(fchmodat), NONE(fchmodat2), NONE(chown),
	NONE(fchown), NONE(lchown), NONE(fchownat), NONE(umask), NONE(utime), NONE(utimes), NONE(futimesat),
	NONE(utimensat), NONE(setxattr), NONE(lsetxattr), NONE(fsetxattr), NONE(setxattrat),
	NONE(removexattr), NONE(lremovexattr), NONE(fremovexattr), NONE(removexattrat),
	NONE(open_by_handle_at), NONE(mount), NONE(umount2), NONE(mount_setattr), NONE(open_tree),
	NONE(open_tree_attr), NONE(move_mount), NONE(fsopen), NONE(fsconfig), NONE(fsmount), NONE(fspick),
	NONE(file_setattr),
	LIST(stat, FIX(1, 144)),
	LIST(fstat, FIX(1, 144)),
	LIST(lstat, FIX(1, 144)),
	LIST(newfstatat, FIX(2, 144)),
	LIST(statx, FIX(4, 256)),
	LIST(statfs, FIX(1, 120)),
	LIST(fstatfs, FIX(1, 120)),
	LIST(ustat, FIX(1, 32)),
	LIST(getdents, RETI(1, 2, 1)),
	LIST(getdents64, RETI(1, 2, 1)),
	LIST(getcwd, RETL(0, 1, 1)),
	LIST(readlink, RETI(1, 2, 1)),
	LIST(readlinkat, RETI(2, 3, 1)),
	LIST(getxattr, RETL(2, 3, 1)),
	LIST(lgetxattr, RETL(2, 3, 1)),
	LIST(fgetxattr, RETL(2, 3, 1)),
	LIST(listxattr, RETL(1, 2, 1)),
	LIST(llistxattr, RETL(1, 2, 1)),
	LIST(flistxattr, RETL(1, 2, 1)),
	LIST(listxattrat, RETL(3, 4, 1)),
	LIST(lookup_dcookie, RETL(1, 2, 1)),
	LIST(cachestat, FIX(2, 40)),
	LIST(file_getattr, CNT(2, 3, 1)),
	LIST(listmount, RETL(1, 2, 8)),
	LIST(listns, RETL(1, 2, 8)),
	FN(getxattrat), FN(name_to_handle_at), FN(statmount), FN(sysfs), CTL(quotactl), CTL(quotactl_fd),
	/* waiting for descriptors */
	NONE(epoll_create), NONE(epoll_create1), NONE(epoll_ctl), NONE(eventfd), NONE(eventfd2),
	NONE(signalfd), NONE(signalfd4), NONE(inotify_init), NONE(inotify_init1), NONE(inotify_add_watch),
	NONE(inotify_rm_watch), NONE(fanotify_init), NONE(fanotify_mark),
	FAIL(poll, CNT(0, 1, 8)),
	FAIL(ppoll, CNT(0, 1, 8), FIX(2, 16)),
	LIST(epoll_wait, RETI(1, 2, 12)),
	LIST(epoll_pwait, RETI(1, 2, 12)),
	LIST(epoll_pwait2, RETI(1, 2, 12)),
	FN(select), FN(pselect6),
	/* sockets */
	NONE(socket), NONE(connect), NONE(bind), NONE(listen), NONE(shutdown), NONE(sendto), NONE(sendmsg),
	FAIL(socketpair, FIX(3, 8)),
	SOCK(sendmmsg), SOCK(accept), SOCK(accept4), SOCK(getsockname),
	SOCK(getpeername),
	CALL(recvfrom, SO_SOCK, SO_FAIL, {0}), CALL(recvmsg, SO_SOCK, SO_FAIL, {0}), CALL(recvmmsg, SO_SOCK, SO_FAIL, {0}),
	CALL(getsockopt, SO_SOCK, SO_FAIL, {0}),
	SOCK(setsockopt),
	/* memory */
	MAP(mmap), MAP(munmap), MAP(mremap), MAP(mprotect), MAP(pkey_mprotect), MAP(brk),
	MAP(remap_file_pages), MAP(shmdt), CTL(madvise), CTL(process_madvise), NONE(msync), NONE(mlock),
	NONE(mlock2), NONE(munlock), NONE(mlockall), NONE(munlockall), NONE(mbind), NONE(set_mempolicy),
	NONE(set_mempolicy_home_node), NONE(migrate_pages), NONE(pkey_alloc), NONE(pkey_free), NONE(mseal),
	NONE(process_mrelease),
	FAIL(move_pages, CNT(4, 1, 4)),
	FN(mincore), FN(get_mempolicy), SOCK(process_vm_readv), SOCK(process_vm_writev), STOP(uselib), STOP(shmat),
	STOP(userfaultfd), STOP(map_shadow_stack),
	/* writes later: rings in shared memory, and buffers that are filled when the call has long returned */
	STOP(io_setup), STOP(io_submit), STOP(io_getevents), STOP(io_pgetevents), STOP(io_cancel),
	STOP(io_destroy), STOP(io_uring_enter), STOP(io_uring_register), FN(io_uring_setup),
	/* processes and threads */
	CALL(clone, SO_SPECIAL, SO_FAIL, {0}), CALL(clone3, SO_SPECIAL, SO_FAIL, {0}),
	SPECIAL(fork), SPECIAL(vfork), SPECIAL(execve), SPECIAL(execveat),
	SPECIAL(exit), SPECIAL(exit_group), NONE(getpid), NONE(getppid), NONE(gettid), NONE(getpgrp),
	NONE(getpgid), NONE(setpgid), NONE(getsid), NONE(setsid), NONE(getuid), NONE(geteuid), NONE(getgid),
	NONE(getegid), NONE(setuid), NONE(setgid), NONE(setreuid), NONE(setregid), NONE(setresuid),
	NONE(setresgid), NONE(setfsuid), NONE(setfsgid), NONE(setgroups), NONE(personality),
	NONE(getpriority), NONE(setpriority), NONE(setrlimit), NONE(sched_yield), NONE(sched_setparam),
	NONE(sched_setscheduler), NONE(sched_getscheduler), NONE(sched_get_priority_max),
	NONE(sched_get_priority_min), NONE(sched_setaffinity), NONE(ioprio_set), NONE(ioprio_get),
	NONE(set_tid_address), NONE(set_robust_list), NONE(unshare), NONE(setns), NONE(kcmp),
	NONE(pidfd_open), NONE(pidfd_getfd), NONE(membarrier), NONE(futex_waitv), NONE(futex_wake),
	NONE(futex_wait), NONE(futex_requeue), NONE(landlock_create_ruleset), NONE(landlock_add_rule),
	NONE(landlock_restrict_self), NONE(lsm_set_self_attr), 	LIST(wait4, FIX(1, 4), FIX(3, 144)),
	FAIL(waitid, FIX(2, 32), FIX(4, 144)),
	LIST(getrusage, FIX(1, 144)),
	LIST(getrlimit, FIX(1, 16)),
	LIST(prlimit64, FIX(3, 16)),
	LIST(getgroups, RETI(1, 0, 4)),
	LIST(getresuid, FIX(0, 4), FIX(1, 4), FIX(2, 4)),
	LIST(getresgid, FIX(0, 4), FIX(1, 4), FIX(2, 4)),
	LOOSE(capget, FIX(0, 8), FIX(1, 24)),
	FAIL(capset, FIX(0, 8)),
	LIST(sched_getparam, FIX(1, 4)),
	LIST(sched_rr_get_interval, FIX(1, 16)),
	LIST(sched_getaffinity, RETI(2, 1, 1)),
	LIST(sched_getattr, CNT(1, 2, 1)),
	FAIL(sched_setattr, FIX(1, 4)),
	LIST(getcpu, FIX(0, 4), FIX(1, 4)),
	FAIL(get_robust_list, FIX(1, 8), FIX(2, 8)),
	LIST(rseq, FIX(0, 32)),
	FAIL(lsm_list_modules, RET(0, 8), FIX(1, 4)),
	FN(futex), FN(modify_ldt), FN(lsm_get_self_attr), CTL(prctl), CTL(arch_prctl), CTL(ptrace), CTL(seccomp),
	/* signals */
	SPECIAL(rt_sigreturn), NONE(kill), NONE(tkill), NONE(tgkill), NONE(rt_sigqueueinfo),
	NONE(rt_tgsigqueueinfo), NONE(pidfd_send_signal), NONE(pause), NONE(rt_sigsuspend),
	LIST(rt_sigaction, FIX(2, 32)),
	LIST(rt_sigprocmask, CNT(2, 3, 1)),
	LIST(rt_sigpending, CNT(0, 1, 1)),
	LIST(rt_sigtimedwait, FIX(1, 128)),
	LIST(sigaltstack, FIX(1, 24)),
	/* time */
	NONE(alarm), NONE(timer_getoverrun), NONE(timer_delete), NONE(timerfd_create), NONE(settimeofday),
	NONE(clock_settime),
	LOOSE(nanosleep, FIX(1, 16)),
	LOOSE(clock_nanosleep, FIX(3, 16)),
	LIST(getitimer, FIX(1, 32)),
	LIST(timer_gettime, FIX(1, 32)),
	LIST(timerfd_gettime, FIX(1, 32)),
	LIST(setitimer, FIX(2, 32)),
	LIST(timer_settime, FIX(3, 32)),
	LIST(timerfd_settime, FIX(3, 32)),
	FAIL(timer_create, FIX(2, 4)),
	LIST(clock_gettime, FIX(1, 16)),
	LIST(clock_getres, FIX(1, 16)),
	FAIL(clock_adjtime, FIX(1, 208)),
	FAIL(adjtimex, FIX(0, 208)),
	LIST(gettimeofday, FIX(0, 16), FIX(1, 8)),
	LIST(time, FIX(0, 8)),
	LIST(times, FIX(0, 32)),
	CTL(restart_syscall),
	/* System V and POSIX IPC, keys */
	NONE(shmget), NONE(semget), NONE(semop), NONE(semtimedop), NONE(msgget), NONE(msgsnd), NONE(mq_open),
	NONE(mq_unlink), NONE(mq_timedsend), NONE(mq_notify), NONE(add_key), NONE(request_key), FN(msgrcv),
	LIST(mq_timedreceive, RETL(1, 2, 1), FIX(3, 4)),
	LIST(mq_getsetattr, FIX(2, 64)),
	CTL(shmctl), CTL(semctl), CTL(msgctl), CTL(keyctl),
	/* the machine */
	NONE(vhangup), NONE(iopl), NONE(ioperm), NONE(acct), NONE(swapon), NONE(swapoff), NONE(reboot),
	NONE(sethostname), NONE(setdomainname), NONE(init_module), NONE(finit_module), NONE(delete_module),
	NONE(kexec_load), NONE(kexec_file_load),
	LIST(sysinfo, FIX(0, 112)),
	LIST(uname, FIX(0, 390)),
	LIST(getrandom, RETL(0, 1, 1)),
	FAIL(perf_event_open, FIX(0, 8)),
	CTL(syslog),
	CALL(bpf, SO_STOP, SO_FAIL, {0}),
	STOP(uprobe), STOP(uretprobe),
	/* none */
	GONE(_sysctl), GONE(create_module), GONE(get_kernel_syms), GONE(query_module), GONE(nfsservctl),
	GONE(getpmsg), GONE(putpmsg), GONE(afs_syscall), GONE(tuxcall), GONE(security),
	GONE(set_thread_area), GONE(get_thread_area), GONE(epoll_ctl_old), GONE(epoll_wait_old),
	GONE(vserver),
};
/* clang-format on */

const uint32_t so_ncalls = sizeof(so_table) / sizeof(so_table[0]);
