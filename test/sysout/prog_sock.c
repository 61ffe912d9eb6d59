/* SPDX-License-Identifier: MIT
 *
 * prog_sock.c - calls on sockets
 */
#include "prog.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

static const struct {
	int level, name;
} options[] = {
	{SOL_SOCKET, SO_TYPE},	     {SOL_SOCKET, SO_ERROR},	  {SOL_SOCKET, SO_LINGER},
	{SOL_SOCKET, SO_RCVTIMEO},   {SOL_SOCKET, SO_PEERCRED},	  {SOL_SOCKET, SO_PEERSEC},
	{SOL_SOCKET, SO_PEERGROUPS}, {SOL_SOCKET, SO_PEERNAME},	  {SOL_SOCKET, SO_BINDTODEVICE},
	{SOL_SOCKET, SO_GET_FILTER}, {SOL_SOCKET, SO_MEMINFO},	  {SOL_SOCKET, SO_COOKIE},
	{SOL_SOCKET, 12345},	     {IPPROTO_TCP, TCP_INFO},	  {IPPROTO_TCP, TCP_CONGESTION},
	{IPPROTO_TCP, TCP_NODELAY},  {IPPROTO_TCP, TCP_ULP},	  {IPPROTO_IP, IP_TTL},
	{IPPROTO_IP, IP_OPTIONS},    {IPPROTO_IPV6, IPV6_V6ONLY},
};

static uint32_t *length(uint32_t n)
{
	uint32_t *l = (uint32_t *)(out[4] + 12);

	fill();
	*l = n;
	return l;
}

static void ask(int fd)
{
	static const uint32_t room[] = {0, 1, 4, 8, 4096};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		for (size_t k = 0; k < sizeof(room) / sizeof(room[0]); k++) {
			uint32_t *l = length(room[k]);

			RAW(getsockopt, fd, options[i].level, options[i].name, out[0] + 1, l);
		}
	C(getsockopt, fd, SOL_SOCKET, SO_TYPE, out[0], BAD);
	for (uint32_t n = 0; n < 120; n += 7) {
		uint32_t *l = length(n);

		RAW(getsockname, fd, out[0], l);
		l = length(n);
		RAW(getpeername, fd, out[0], l);
	}
}

static struct msghdr *msg(struct msghdr *m, size_t room)
{
	static struct iovec v[3];

	fill();
	v[0] = (struct iovec){out[0], 2};
	v[1] = (struct iovec){out[1] + 5, 3};
	v[2] = (struct iovec){out[2], 20};
	*m = (struct msghdr){.msg_name = out[3], .msg_namelen = 10, .msg_iov = v, .msg_iovlen = 3};
	m->msg_control = out[4] + 8;
	m->msg_controllen = room;
	return m;
}

static void send_fd(int fd, int what)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} c = {.h = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct msghdr m = {.msg_iov = &(struct iovec){"some data", 9}, .msg_iovlen = 1};

	memcpy(CMSG_DATA(&c.h), &what, sizeof(what));
	m.msg_control = &c;
	m.msg_controllen = sizeof(c);
	C(sendmsg, fd, &m, 0);
}

static void messages(int a, int b)
{
	struct msghdr *m = (struct msghdr *)out[5];
	int on = 1;

	C(setsockopt, b, SOL_SOCKET, SO_PASSCRED, &on, 4);
	for (size_t room = 0; room < 100; room += 20) {
		send_fd(a, 0);
		RAW(recvmsg, b, msg(m, room), 0);
	}
	send_fd(a, 0);
	RAW(recvmsg, b, msg(m, 100), MSG_PEEK | MSG_TRUNC);
	RAW(recvmsg, b, msg(m, 100), MSG_TRUNC);
	RAW(recvmsg, b, msg(m, 100), MSG_DONTWAIT);
	C(recvmsg, b, BAD, MSG_DONTWAIT);
	/* data over the description of the message, and over that of its buffers */
	send_fd(a, 0);
	msg(m, 0)->msg_iov[0] = (struct iovec){m, 56};
	RAW(recvmsg, b, m, MSG_DONTWAIT);
	send_fd(a, 0);
	msg(m, 0)->msg_iov[0] = (struct iovec){m->msg_iov, 48};
	RAW(recvmsg, b, m, MSG_DONTWAIT);

	struct mmsghdr *mm = (struct mmsghdr *)out[5], to[3] = {0};
	struct timespec *t = (struct timespec *)(out[4] + 1024);
	struct iovec part[3];

	for (int i = 0; i < 3; i++) {
		part[i] = (struct iovec){"message", (size_t)i + 3};
		to[i].msg_hdr.msg_iov = &part[i];
		to[i].msg_hdr.msg_iovlen = 1;
	}
	C(sendmmsg, a, to, 3, 0);
	msg(&mm[0].msg_hdr, 30);
	mm[1] = mm[2] = mm[3] = mm[0];
	mm[1].msg_hdr.msg_name = NULL;
	*t = (struct timespec){1, 0};
	RAW(recvmmsg, b, mm, 4, MSG_DONTWAIT, t);
	RAW(recvmmsg, b, mm, 4, MSG_DONTWAIT, NULL);
	fill();
	memcpy(out[5], to, sizeof(to));
	RAW(sendmmsg, a, out[5], 2, 0);
}

static void stream(int family)
{
	union {
		struct sockaddr s;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	} addr = {0};
	socklen_t len = family == AF_INET ? sizeof(addr.in) : family == AF_INET6 ? sizeof(addr.in6) : 12;
	int l = (int)C(socket, family, SOCK_STREAM, 0), c = (int)C(socket, family, SOCK_STREAM, 0), s;

	addr.s.sa_family = (sa_family_t)family;
	if (family == AF_UNIX)
		strcpy(addr.un.sun_path, "socket");
	if (family == AF_INET)
		addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (family == AF_INET6)
		addr.in6.sin6_addr = in6addr_loopback;
	if (l >= 0 && c >= 0 && !C(bind, l, &addr, len) && !C(listen, l, 3)) {
		len = sizeof(addr);
		getsockname(l, &addr.s, &len);
		for (uint32_t n = 0; n < 40; n += 3) {
			C(connect, c, &addr, len);
			uint32_t *room = length(n);

			s = (int)(n & 1 ? RAW(accept, l, out[0], room) : RAW(accept4, l, out[0], room, 0));
			if (!n)
				ask(s);
			C(sendto, c, "hello", 5, 0, NULL, 0);
			room = length(n);
			RAW(recvfrom, s, out[0], 100, MSG_PEEK, out[1], room);
			RAW(recvfrom, s, out[0], 3, MSG_TRUNC, NULL, NULL);
			C(ioctl, s, 0x541b, out[0]);
			C(ioctl, s, 0x8905, out[0]);
			RAW(recvfrom, s, out[0], 100, MSG_DONTWAIT, NULL, NULL);
			RAW(recvfrom, s, out[0], 100, MSG_DONTWAIT, NULL, NULL);
			C(shutdown, s, 2);
			C(close, s);
			C(close, c);
			c = (int)C(socket, family, SOCK_STREAM, 0);
			if (n > 6 && family != AF_INET6)
				break;
		}
		C(accept4, l, out[0], BAD, SOCK_NONBLOCK | 7);
	}
	if (family == AF_UNIX)
		C(unlink, "socket");
	C(close, l);
	C(close, c);
}

static void datagrams(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(to);
	int a = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
	struct msghdr *m = (struct msghdr *)out[5];

	if (a < 0 || bind(a, (struct sockaddr *)&to, len) || getsockname(a, (struct sockaddr *)&to, &len))
		return;
	C(setsockopt, a, SOL_SOCKET, SO_TIMESTAMP, &on, 4);
	C(setsockopt, a, IPPROTO_IP, IP_PKTINFO, &on, 4);
	for (uint32_t n = 0; n < 24; n += 5) {
		C(sendto, a, "datagram", 8, 0, &to, sizeof(to));
		uint32_t *room = length(n);

		RAW(recvfrom, a, out[0], n, MSG_DONTWAIT | (n & 2 ? MSG_TRUNC : 0), out[1], room);
		C(sendto, a, "datagram", 8, 0, &to, sizeof(to));
		RAW(recvmsg, a, msg(m, n * 8), MSG_DONTWAIT);
	}
	C(sendto, a, "datagram", 8, 0, &to, sizeof(to));
	uint32_t *room = length(-1);

	RAW(recvfrom, a, out[0], 100, MSG_DONTWAIT, out[1], room);
	C(ioctl, a, 0x8906, out[0]);
	C(ioctl, a, 0x8907, out[0]);
	ask(a);
	C(close, a);
}

void sockets(void)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
	int sv[2];

	for (int i = 0; i < 3; i++) {
		C(socketpair, AF_UNIX, types[i], 0, out[0]);
		memcpy(sv, out[0], sizeof(sv));
		ask(sv[0]);
		messages(sv[0], sv[1]);
		C(close, sv[0]);
		C(close, sv[1]);
	}
	C(socketpair, AF_UNIX, 99, 0, out[0]);
	C(socketpair, AF_INET, SOCK_STREAM, 0, out[0]);
	C(socketpair, -1, SOCK_STREAM, 0, out[0]);
	stream(AF_UNIX);
	stream(AF_INET);
	stream(AF_INET6);
	datagrams();
}
