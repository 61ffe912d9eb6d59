/* SPDX-License-Identifier: MIT
 *
 * discover_unseen.c - what code that was not found may lead to
 *
 *     known:   jmp  inner ──▶ inner: …       no entry, as far as is known: a patch beside it may lie over its beginning
 *     unseen:  call inner ──▶                bytes between functions that nothing was found to reach, or that
 *                                            do not decode throughout
 *
 * Such bytes may be data; they may as well be code that only an address names which cannot be followed, and that runs
 * as it is. So whatever they would call, jump to or take the address of, were they code, is an entry for everybody. Transfers
 * over four bytes and addresses are looked for at every byte: where code begins there is not known. Those over one byte would be
 * found all over data, so only where the bytes are read as instructions one after the other. A place too many costs a mark in the log.
 *
 * Unreached bytes of functions with unwind tables are not looked at: discover_suspect.c.
 */
#include "disc.h"
#include "disc_head.h"

static void leads_to(struct disc *d, uint64_t t)
{
	if (t < UINT32_MAX && disc_in(d, (uint32_t)t) && IL_START(d->il[t - d->lo]))
		d->st[t - d->lo] |= ST_ENTRY | ST_TAKEN;
}

/* p: n bytes from v on */
static void at_byte(struct disc *d, uint32_t v, const uint8_t *p, uint32_t n)
{
	if (n < 5)
		return;
	if (p[0] == 0xe8 || p[0] == 0xe9) /* call, jmp */
		leads_to(d, v + 5 + (int64_t)disc_word(p + 1));
	else if (!d->m->pie && ((p[0] & 0xf8) == 0xb8 || p[0] == 0x68)) /* mov, push of an immediate */
		leads_to(d, (uint32_t)disc_word(p + 1));
	if (n < 6)
		return;
	if (p[0] == 0x0f && (p[1] & 0xf0) == 0x80) /* jcc */
		leads_to(d, v + 6 + (int64_t)disc_word(p + 2));
	else if (!d->m->pie && p[0] == 0xc7 && (p[1] & 0xf8) == 0xc0) /* mov, sign-extended */
		leads_to(d, (uint32_t)disc_word(p + 2));
	else if (p[0] == 0x8d && (p[1] & 0xc7) == 5) /* lea disp(%rip) */
		leads_to(d, v + 6 + (int64_t)disc_word(p + 2));
}

static void in_run(struct disc *d, uint32_t v, const uint8_t *p, uint32_t n)
{
	struct head h;

	for (uint32_t i = 0; i < n; i++)
		at_byte(d, v + i, p + i, n - i);
	for (uint32_t i = 0; i < n; i += h.len) {
		if (!disc_head(d->memo, &d->fast, p + i, n - i, &h)) {
			h.len = 1;
			continue;
		}
		if (h.kind == K_JMP8 || h.kind == K_JCC8)
			leads_to(d, v + i + h.len + (int64_t)(int8_t)p[i + h.len - 1]);
	}
}

void disc_unseen(struct disc *d)
{
	for (uint32_t i = 0; i < d->piece.n; i++) {
		const struct piece *p = &d->piece.v[i];
		uint32_t v = p->start, stop;

		if (p->kind != PC_GAP && !p->reason)
			continue;
		for (; (v = disc_run(d, v, p->end, &stop)) < p->end; v = stop) {
			const uint8_t *b = elf_at(d->m, v, stop - v);

			if (b)
				in_run(d, v, b, stop - v);
		}
	}
}
