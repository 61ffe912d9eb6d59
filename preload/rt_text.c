/* SPDX-License-Identifier: MIT
 *
 * rt_text.c - what a module executes, kept for the decoder of Intel PT packets
 *
 *   run.dir/maps/KEY.text    the module's file: ELF header, program headers and executable segments at their places, the
 *                            rest holes
 *
 * Packets tell which way branches went, not which branches there were: whoever decodes them needs every instruction
 * that ran, of code that was left alone, too, and of the runtime. Once for each file in a run.
 */
#include <elf.h>
#include "rt.h"
#include "run_pt.h"

#define MAX_PHDR 64

static bool text_path(const struct rt_module *m, char *buf, bool mine)
{
	struct rt_str s = rt_str(buf, RT_PATH);

	rt_put(&s, rt.run);
	rt_put(&s, "/maps/");
	for (uint32_t i = 0; i < m->key_len; i++)
		rt_putx(&s, m->key[i], 2);
	rt_put(&s, ".text");
	if (mine) { /* until it is complete */
		rt_put(&s, ".");
		rt_putu(&s, rt.pid);
	}
	return !s.cut;
}

/* n bytes at `at`, from one file to the same place in another */
static int copy(int from, int to, uint64_t at, uint64_t n)
{
	uint8_t *buf = rt_scratch(RT_WINDOW);

	if (!buf)
		return -ENOMEM;
	while (n) {
		long r = rt_pread(from, buf, n < RT_WINDOW ? n : RT_WINDOW, at), w = 0;

		if (r == 0)
			return 0; /* a file that is shorter than it says */
		for (long k = 0; k < r && !rt_err(w); k += w)
			w = rt_sc(__NR_pwrite64, to, buf + k, r - k, at + (uint64_t)k);
		if (rt_err(r) || rt_err(w))
			return (int)(rt_err(r) ? r : w);
		at += (uint64_t)r;
		n -= (uint64_t)r;
	}
	return 0;
}

static int copy_text(int from, int to)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph[MAX_PHDR];
	int r;

	if (rt_pread(from, &eh, sizeof(eh), 0) != sizeof(eh) || eh.e_phnum > MAX_PHDR ||
	    rt_pread(from, ph, eh.e_phnum * sizeof(ph[0]), eh.e_phoff) != (long)(eh.e_phnum * sizeof(ph[0])))
		return -ENOEXEC;
	r = copy(from, to, 0, sizeof(eh));
	if (!r)
		r = copy(from, to, eh.e_phoff, eh.e_phnum * sizeof(ph[0]));
	for (int i = 0; i < eh.e_phnum && !r; i++)
		if (ph[i].p_type == PT_LOAD && (ph[i].p_flags & PF_X))
			r = copy(from, to, ph[i].p_offset, ph[i].p_filesz);
	return r;
}

/* fd: m's file. 0 or -errno; without it the decoder says what it misses */
int rt_text_keep(const struct rt_module *m, int fd)
{
	char path[RT_PATH], tmp[RT_PATH];
	long to;
	int r;

	if (!m->key_len || !text_path(m, path, false) || !text_path(m, tmp, true))
		return -ENAMETOOLONG;
	if (!rt_err(rt_sc(__NR_access, path, 0)))
		return 0;
	to = rt_open(tmp, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (rt_err(to))
		return (int)to;
	r = copy_text(fd, (int)to);
	rt_close((int)to);
	if (!r)
		r = (int)rt_sc(__NR_rename, tmp, path);
	if (r)
		rt_sc(__NR_unlink, tmp);
	return r;
}
