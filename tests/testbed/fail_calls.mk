# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The calls that fail_calls.c takes the place of: FAIL_CALLS is for LDFLAGS of a
# program that has fail_calls.c among its SRCS.

TARGET_OS?=	${.MAKE.OS}
_FAIL_CALLS=	accept4 aligned_alloc bind calloc close_range connect dup2 \
		eventfd fchmodat fchownat fcntl flock fork free fstat	\
		ftruncate getentropy getline getrlimit getsockopt ioctl	\
		listen lstat malloc memfd_create mmap munmap open pipe2 poll	\
		ppoll pread pthread_create pthread_key_create		\
		pthread_mutex_destroy pthread_mutex_init		\
		pthread_mutex_lock pthread_mutex_unlock pwrite read	\
		reallocarray recv recvfrom recvmsg sem_init sem_wait	\
		send sendmsg sendto setrlimit setsockopt socket		\
		socketpair strdup strndup timerfd_create		\
		timerfd_settime unlink write
.if ${TARGET_OS} == "Linux"
_FAIL_CALLS+=	epoll_create1 epoll_ctl epoll_wait eventfd_read		\
		eventfd_write fstatfs prctl signalfd syscall
.endif
FAIL_CALLS=	${_FAIL_CALLS:S/^/-Wl,--wrap=/}
