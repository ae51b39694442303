/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See checker.h.
 *
 *	relacy -l			list the sites
 *	relacy [-v] [-n executions] scenario
 *			check a scenario; -v shows the execution that fails
 *	relacy [-v] [-n executions] -w site -m order scenario
 *			the same with a site weakened to `order'
 *	relacy [-n executions] -t table [scenario]
 *			check what the table says about the scenario, or that it
 *			has every site; sites.table explains the table
 *	relacy [-n executions] -g [prefix]
 *			try all sites, or those with this prefix, in all
 *			scenarios
 *
 * Atomic variables.  Each address in shared memory that an atomic operation is
 * applied to has a cell, one of Relacy's atomics, which holds the difference to
 * the value at the beginning of the execution.  The last value stored is also
 * in memory itself, for plain accesses.  A plain store to such an address (a
 * descriptor that is filled again) becomes a relaxed one when the thread gets
 * to its next access.
 *
 * Plain variables.  The first access to a byte makes one of Relacy's variables.
 * Atomic operations count as loads there, so that only pairs with a plain store
 * are races.
 *
 * A thread may be preempted before each atomic operation, lock and unlock; how
 * often is drawn for each execution, because some errors need many switches and
 * others one in the right place.
 *
 * What Relacy does not do: a load never returns a value that is stored later
 * (load buffering), and an atomic has its last three values only.
 */

#include <sys/types.h>
#include <sys/wait.h>

#include <err.h>
#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <relacy/relacy.hpp>
#include <relacy/stdlib/event.hpp>
#include <relacy/stdlib/mutex.hpp>

#include "checker.h"

extern "C" {
void	*__real_malloc(size_t size);
void	 __real_free(void *p);
void	*__real_memcpy(void *dst, const void *src, size_t len);
void	*__real_memmove(void *dst, const void *src, size_t len);
void	*__real_memset(void *dst, int c, size_t len);
int	 __real_memcmp(const void *a, const void *b, size_t len);
extern struct mm_site *const __start_mm_sites[], *const __stop_mm_sites[];
void	(*mm_locked)(const void *mutex, int thread);
}

namespace {

const size_t ARENA = 4 << 20;
const size_t LINE = 64;
const size_t CELLS = 4096;

/* A member that Relacy keeps private. */
template<typename tag, typename tag::type member>
struct open_member {
	friend typename tag::type member_of(tag) { return (member); }
};
struct impl_tag {
	typedef rl::atomic_data *rl::generic_atomic<uint64_t, true>::*type;
	friend type member_of(impl_tag);
};
template struct open_member<impl_tag,
    &rl::generic_atomic<uint64_t, true>::impl_>;

/*
 * The value that an atomic begins with was stored before all threads began, but
 * a thread has not seen it until it loads it.
 */
template<int n>
void
unseen(rl::generic_atomic<uint64_t, true> *a)
{
	rl::atomic_data_impl<n> *data =
	    static_cast<rl::atomic_data_impl<n> *>(a->*member_of(impl_tag()));

	for (rl::timestamp_t &t : data->history_[data->current_index_ %
	    rl::atomic_history_size].first_seen_order_)
		t = (rl::timestamp_t)-1;
}
void (*cell_unseen)(rl::generic_atomic<uint64_t, true> *);

/* The shared memory, as it is now and as setup() left it. */
alignas(4096) char arena[ARENA], saved[ARENA];
size_t arena_used;
bool setting_up, tracking;

/* Lines that were written to. */
bool dirty[ARENA / LINE];
size_t dirty_list[ARENA / LINE], ndirty;

/* Cells, by address. */
typedef rl::generic_atomic<uint64_t, true> rl_atomic;
struct cell {
	size_t	 off;
	int	 size;
	uint64_t base;
	alignas(rl_atomic) char atomic[sizeof(rl_atomic)];
	rl_atomic *a() { return ((rl_atomic *)(void *)atomic); }
};
cell cells[CELLS];
size_t ncells;
uint16_t cell_of[ARENA];	/* index + 1 */
bool word64[ARENA / 8];		/* has one cell, whatever the access */

rl::var_data *var_of[ARENA];
size_t var_list[ARENA], nvars;

/* A plain store that was announced, and is done by the next access. */
struct {
	size_t	off, len;
} pending[MM_THREADS_MAX];

typedef rl::mutex rl_mutex;

struct lock {
	const void *addr;
	bool	 exists;	/* in this execution */
	int	 owner;		/* -1: none */
	alignas(rl::mutex) char mutex[sizeof(rl::mutex)];
	rl::mutex *m() { return ((rl::mutex *)(void *)mutex); }
};
lock locks[64];
size_t nlocks;

struct event {
	const void *addr;
	bool	 exists;
	uint64_t count;		/* of an eventfd */
	rl::event_data *e;
	lock	*l;
};
event events[16];
size_t nevents;

const int FD_FIRST = 1000;
char fd_addr[16];
int nfds;

unsigned int calm;		/* a thread is preempted once in so many */
const struct mm_scenario *scenario;
const char *weak_order;
char failure[200];

bool
shared(const volatile void *p)
{
	return ((const volatile char *)p >= arena &&
	    (const volatile char *)p < arena + arena_used);
}

size_t
offset(const volatile void *p)
{
	return ((const volatile char *)p - arena);
}

int
self(void)
{
	return (rl::ctx().threadx_->index_);
}

rl::debug_info
where(const struct mm_site *site)
{
	if (site == NULL)
		return (rl::debug_info("relaxed", "", 0));
	return (rl::debug_info(site->function, site->file, site->line));
}

/* Do not preempt the thread in the next operation, most of the time. */
struct calmly {
	bool	stay;

	calmly(bool always = false)
	{
		stay = always || (calm > 1 &&
		    rl::ctx().rand(calm, rl::sched_type_user) != 0);
		if (stay)
			rl::ctx().disable_preemption();
	}
	~calmly()
	{
		if (stay)
			rl::ctx().enable_preemption();
	}
};

void
mark(size_t off, size_t len)
{
	size_t l;

	for (l = off / LINE; l <= (off + len - 1) / LINE; l++) {
		if (!dirty[l]) {
			dirty[l] = true;
			dirty_list[ndirty++] = l;
		}
	}
}

uint64_t
mask(int size)
{
	return (size == 8 ? ~0ULL : (1ULL << 8 * size) - 1);
}

uint64_t
get(size_t off, int size)
{
	uint64_t v = 0;

	__real_memcpy(&v, arena + off, size);
	return (v);
}

void
put(size_t off, int size, uint64_t v)
{
	mark(off, size);
	__real_memcpy(arena + off, &v, size);
}

cell *
cell_find(size_t off, int size)
{
	cell *c;

	if (word64[off / 8]) {
		off &= ~(size_t)7;
		size = 8;
	}
	if (cell_of[off] == 0) {
		if (ncells == CELLS)
			mm_fail("too many atomic variables", __FILE__,
			    __LINE__);
		c = &cells[ncells++];
		c->off = off;
		c->size = size;
		c->base = get(off, size);
		new (c->atomic) rl_atomic();
		cell_unseen(c->a());
		cell_of[off] = ncells;
	}
	c = &cells[cell_of[off] - 1];
	if (c->size != size)
		mm_fail("atomic variable used with two sizes", __FILE__,
		    __LINE__);
	return (c);
}

/* The cell's last value. */
uint64_t
cell_last(cell *c)
{
	return ((c->a()->debug_value() + c->base) & mask(c->size));
}

/* Enter the thread's last plain store into the cells. */
void
settle(void)
{
	size_t end, off;
	cell *c;
	int me = self();

	if (pending[me].len == 0)
		return;
	off = pending[me].off & ~(size_t)7;
	end = pending[me].off + pending[me].len;
	pending[me].len = 0;
	for (; off < end; off++) {
		if (cell_of[off] == 0)
			continue;
		c = &cells[cell_of[off] - 1];
		if (get(off, c->size) == cell_last(c))
			continue;
		calmly always(true);
		c->a()->store((get(off, c->size) - c->base) & mask(c->size),
		    rl::mo_relaxed, rl::debug_info("plain", "", 0));
	}
}

void
track(size_t off, size_t len, bool write, const rl::debug_info &info)
{
	rl::thread_info_base &th = *rl::ctx().threadx_;
	rl::var_data *v;
	size_t i;

	for (i = off; i < off + len; i++) {
		v = var_of[i];
		if (v == NULL) {
			v = var_of[i] = rl::ctx().var_ctor();
			var_list[nvars++] = i;
		}
		if (!(write ? v->store(th) : v->load(th))) {
			snprintf(failure, sizeof(failure),
			    "data race at %s of %zu bytes, arena+%#zx, %s:%u",
			    write ? "store" : "load", len, off, info.func_,
			    info.line_);
			rl::ctx().fail_test(failure, rl::test_result_data_race,
			    info);
		}
	}
}

void
plain(const void *p, size_t len, bool write, const void *pc)
{
	size_t off;

	(void)pc;
	if (!tracking || len == 0 || !shared(p))
		return;
	settle();
	off = offset(p);
	track(off, len, write, rl::debug_info("plain access", "", 0));
	if (write) {
		mark(off, len);
		pending[self()].off = off;
		pending[self()].len = len;
	}
}

lock *
lock_find(const void *addr)
{
	size_t i;

	for (i = 0; i < nlocks && locks[i].addr != addr; i++)
		;
	if (i == nlocks) {
		if (nlocks == sizeof(locks) / sizeof(locks[0]))
			errx(1, "too many mutexes");
		nlocks++;
		locks[i].addr = addr;
		locks[i].owner = -1;
	}
	if (tracking && !locks[i].exists) {
		new (locks[i].mutex) rl::mutex();
		locks[i].exists = true;
		locks[i].owner = -1;
	}
	return (&locks[i]);
}

static bool
lock_try(lock *l)
{
	bool taken;

	if (!tracking) {
		l->owner = 0;
		return (true);
	}
	settle();
	{
		calmly c;
		taken = l->m()->try_lock($);
	}
	if (!taken)
		return (false);
	l->owner = self();
	if (mm_locked != NULL)
		mm_locked(l->addr, self());
	return (true);
}

void
lock_take(lock *l)
{
	if (!tracking) {
		l->owner = 0;
		return;
	}
	settle();
	{
		calmly c;
		l->m()->lock($);
	}
	l->owner = self();
	if (mm_locked != NULL)
		mm_locked(l->addr, self());
}

void
lock_drop(lock *l)
{
	l->owner = -1;
	if (!tracking)
		return;
	settle();
	calmly c;
	l->m()->unlock($);
}

event *
event_find(const void *addr)
{
	size_t i;

	for (i = 0; i < nevents && events[i].addr != addr; i++)
		;
	if (i == nevents) {
		if (nevents == sizeof(events) / sizeof(events[0]))
			errx(1, "too many events");
		events[nevents++].addr = addr;
	}
	if (tracking && !events[i].exists) {
		events[i].e = rl::ctx().event_ctor(true, events[i].count > 0);
		events[i].exists = true;
		events[i].l = lock_find(&events[i]);
	}
	return (&events[i]);
}

void
event_add(event *ev, uint64_t n)
{
	if (!tracking) {
		ev->count += n;
		return;
	}
	lock_take(ev->l);
	ev->count += n;
	ev->e->set($);
	lock_drop(ev->l);
}

uint64_t
event_take(event *ev)
{
	uint64_t n;

	if (!tracking) {
		n = ev->count;
		ev->count = 0;
		return (n);
	}
	lock_take(ev->l);
	n = ev->count;
	ev->count = 0;
	ev->e->reset($);
	lock_drop(ev->l);
	return (n);
}

uint64_t fd_saved[16];

void
execution_begin(void)
{
	size_t i;

	for (i = 0; i < ndirty; i++) {
		__real_memcpy(arena + dirty_list[i] * LINE,
		    saved + dirty_list[i] * LINE, LINE);
		dirty[dirty_list[i]] = false;
	}
	ndirty = 0;
	for (i = 0; i < nevents; i++)
		events[i].count = fd_saved[i];
	__real_memset(pending, 0, sizeof(pending));
	calm = 1 << 2 * rl::ctx().rand(4, rl::sched_type_user);
	tracking = true;
}

void
execution_end(void)
{
	size_t i;

	settle();
	if (scenario->check != NULL)
		scenario->check();
	settle();
	tracking = false;
	for (i = 0; i < ncells; i++) {
		cells[i].a()->~rl_atomic();
		cell_of[cells[i].off] = 0;
	}
	ncells = 0;
	for (i = 0; i < nvars; i++) {
		rl::ctx().var_dtor(var_of[var_list[i]]);
		var_of[var_list[i]] = NULL;
	}
	nvars = 0;
	for (i = 0; i < nevents; i++) {
		if (events[i].exists)
			rl::ctx().event_dtor(events[i].e);
		events[i].exists = false;
	}
	for (i = 0; i < nlocks; i++) {
		if (locks[i].exists)
			locks[i].m()->~rl_mutex();
		locks[i].exists = false;
	}
}

template<int n>
struct suite : rl::test_suite<suite<n>, n> {
	void before() { execution_begin(); }
	void thread(unsigned i) { scenario->thread[i](); settle(); }
	void after() { execution_end(); }
};

/* The weakened site, by its name? */
std::string
site_name(const struct mm_site *s)
{
	std::string name(s->function), operand;
	const char *p;

	for (p = s->operand; *p != '\0'; p++) {
		if (*p != ' ' && !(p == s->operand && *p == '&'))
			operand += *p;
	}
	name += ' ';
	name += s->operation;
	name += ' ';
	name += operand;
	return (name);
}

struct site_row {
	const struct mm_site *site;
	std::string name;
};

/* A header's path depends on the file that includes it. */
const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return (slash == NULL ? path : slash + 1);
}

bool
site_less(const site_row &a, const site_row &b)
{
	int c = strcmp(base_name(a.site->file), base_name(b.site->file));

	return (c != 0 ? c < 0 : a.site->line < b.site->line);
}

/*
 * All sites, once each: "function operation operand", with a number if the
 * function has several of them.
 */
std::vector<site_row> &
sites(void)
{
	static std::vector<site_row> all;
	std::map<std::string, int> seen;
	struct mm_site *const *s;
	size_t i;
	int n;

	if (!all.empty())
		return (all);
	for (s = __start_mm_sites; s < __stop_mm_sites; s++) {
		for (i = 0; i < all.size(); i++) {
			if (all[i].site->line == (*s)->line &&
			    strcmp(base_name(all[i].site->file),
			    base_name((*s)->file)) == 0 &&
			    all[i].name == site_name(*s))
				break;
		}
		if (i == all.size())
			all.push_back(site_row { *s, site_name(*s) });
	}
	std::sort(all.begin(), all.end(), site_less);
	for (i = 0; i < all.size(); i++) {
		n = ++seen[all[i].name];
		if (n > 1)
			all[i].name += " " + std::to_string(n);
	}
	return (all);
}

const struct mm_site *weak;

bool
same_site(const struct mm_site *a, const struct mm_site *b)
{
	return (a->line == b->line &&
	    strcmp(base_name(a->file), base_name(b->file)) == 0 &&
	    strcmp(a->operand, b->operand) == 0 &&
	    strcmp(a->operation, b->operation) == 0);
}

/* The orders that a site can be weakened to. */
std::vector<std::string>
weaker(const std::string &operation)
{
	if (operation == "fence_seq_cst")
		return { "acq_rel", "none" };
	if (operation.compare(0, 6, "fence_") == 0)
		return { "none" };
	return { "relaxed" };
}

bool
is_weak(struct mm_site *site)
{
	if (site != NULL)
		site->hit = true;
	return (weak != NULL && site != NULL && (site == weak ||
	    same_site(site, weak)));
}

/* An inline function's site is in several files' tables. */
bool
is_hit(const site_row &row)
{
	struct mm_site *const *s;

	for (s = __start_mm_sites; s < __stop_mm_sites; s++) {
		if ((*s)->hit && same_site(*s, row.site))
			return (true);
	}
	return (false);
}

struct outcome {
	int	 result;	/* rl::test_result_e, or -1: signal */
	uint64_t executions;
	char	 what[sizeof(failure)];
	bool	 hit[512];	/* sites, by their place in sites() */
};

/* Run in a process of its own: an execution that fails leaves a mess. */
outcome
run(const struct mm_scenario *s, const struct mm_site *site,
    const std::string &order, uint64_t executions, bool verbose)
{
	outcome o;
	pid_t pid;
	int fds[2], status;

	fflush(stdout);
	if (pipe(fds) == -1 || (pid = fork()) == -1)
		err(1, "fork");
	if (pid == 0) {
		rl::test_params params;
		std::ostringstream oss, quiet;
		size_t i;

		scenario = s;
		setting_up = true;
		s->setup();
		setting_up = false;
		__real_memcpy(saved, arena, arena_used);
		for (i = 0; i < nevents; i++)
			fd_saved[i] = events[i].count;
		for (i = 0; i < nlocks; i++) {
			if (locks[i].owner != -1)
				errx(1, "setup() left a mutex locked");
		}
		weak = site;
		weak_order = order.c_str();
		params.iteration_count = executions;
		params.execution_depth_limit = 20000;
		params.collect_history = verbose;
		params.progress_stream = &quiet;
		rl::ostringstream state;

		cell_unseen = s->nthreads == 2 ? unseen<2> : unseen<3>;
		if (s->nthreads == 2)
			o.result = rl::run_test<suite<2>,
			    rl::random_scheduler<2> >(params, state, false);
		else
			o.result = rl::run_test<suite<3>,
			    rl::random_scheduler<3> >(params, state, false);
		o.executions = params.stop_iteration;
		snprintf(o.what, sizeof(o.what), "%s", failure[0] != '\0' ?
		    failure : rl::test_result_str((rl::test_result_e)o.result));
		std::cout.flush();
		for (i = 0; i < sites().size(); i++)
			o.hit[i] = is_hit(sites()[i]);
		if (write(fds[1], &o, sizeof(o)) != sizeof(o))
			_exit(1);
		_exit(0);
	}
	close(fds[1]);
	if (read(fds[0], &o, sizeof(o)) != sizeof(o)) {
		__real_memset(&o, 0, sizeof(o));
		o.result = -1;
		snprintf(o.what, sizeof(o.what), "crash");
	}
	close(fds[0]);
	waitpid(pid, &status, 0);
	return (o);
}

/* One word for the kind of a failure. */
const char *
kind(const outcome &o)
{
	switch (o.result) {
	case rl::test_result_success:
		return ("holds");
	case rl::test_result_data_race:
		return ("race");
	case rl::test_result_deadlock:
		return ("deadlock");
	case rl::test_result_livelock:
		return ("livelock");
	case rl::test_result_user_assert_failed:
		return ("assertion");
	default:
		return ("crash");
	}
}

std::vector<const struct mm_scenario *>
scenarios(void)
{
	std::vector<const struct mm_scenario *> all;
	const struct mm_scenario *s;

	for (const struct mm_scenario *list : { tx_scenarios, rx_scenarios,
	    vale_scenarios })
		for (s = list; s->name != NULL; s++)
			all.push_back(s);
	return (all);
}

const struct mm_scenario *
scenario_find(const std::string &name)
{
	for (const struct mm_scenario *s : scenarios())
		if (name == s->name)
			return (s);
	return (NULL);
}

const struct mm_site *
site_find(const std::string &name)
{
	for (const site_row &r : sites())
		if (r.name == name)
			return (r.site);
	return (NULL);
}

struct table_row {
	std::string site, order, scenario;
};

/*
 * Lines "function operation operand [number]", and below each "\torder
 * scenario" or "\torder -reason".
 */
std::vector<table_row>
table_read(const char *path)
{
	std::vector<table_row> rows;
	std::string site, text;
	char line[200], *colon, *p;
	FILE *f;

	f = fopen(path, "r");
	if (f == NULL)
		err(1, "%s", path);
	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#' || line[0] == '\0')
			continue;
		if (line[0] != '\t') {
			site = line;
			continue;
		}
		p = line + 1;
		colon = strchr(p, ' ');
		if (colon == NULL || site.empty())
			errx(1, "%s: %s", path, line);
		*colon = '\0';
		rows.push_back(table_row { site, p, colon + 1 });
	}
	fclose(f);
	return (rows);
}

/* The table has all sites and weakenings, once each, and no others. */
int
table_complete(const char *path)
{
	std::map<std::string, int> rows;
	int wrong = 0;

	for (const table_row &r : table_read(path)) {
		rows[r.site + ": " + r.order]++;
		if (r.scenario[0] != '-' && scenario_find(r.scenario) == NULL) {
			printf("%s: no such scenario\n", r.scenario.c_str());
			wrong = 1;
		}
	}
	for (const site_row &s : sites()) {
		for (const std::string &order : weaker(s.site->operation)) {
			std::string name = s.name + ": " + order;

			if (rows[name] != 1) {
				printf("%s: %d times in the table (%s:%d)\n",
				    name.c_str(), rows[name], s.site->file,
				    s.site->line);
				wrong = 1;
			}
			rows.erase(name);
		}
	}
	for (const auto &r : rows) {
		if (r.second == 0)
			continue;
		printf("%s: in the table, not in the code\n", r.first.c_str());
		wrong = 1;
	}
	return (wrong);
}

int
table_check(const char *path, const struct mm_scenario *s, uint64_t executions)
{
	outcome o;
	int wrong = 0;

	o = run(s, NULL, "", executions, false);
	printf("%s: %s (%s, %llu executions)\n", s->name, kind(o), o.what,
	    (unsigned long long)o.executions);
	if (o.result != rl::test_result_success)
		return (1);
	for (const table_row &r : table_read(path)) {
		if (r.scenario != s->name)
			continue;
		const struct mm_site *site = site_find(r.site);

		if (site == NULL) {
			printf("%s: no such site\n", r.site.c_str());
			wrong = 1;
			continue;
		}
		o = run(s, site, r.order, executions, false);
		printf("%s: %s: %s (%s, %llu executions)\n", r.site.c_str(),
		    r.order.c_str(), kind(o), o.what,
		    (unsigned long long)o.executions);
		if (o.result == rl::test_result_success)
			wrong = 1;
	}
	return (wrong);
}

/* Write the table, as far as a search of this length can tell. */
void
table_search(uint64_t executions, const std::string &prefix)
{
	std::vector<const struct mm_scenario *> all = scenarios();
	std::vector<outcome> hits;
	const struct mm_scenario *in;
	size_t i, j;
	outcome o;

	for (const struct mm_scenario *s : all)
		hits.push_back(run(s, NULL, "", 1000, false));
	for (i = 0; i < sites().size(); i++) {
		const site_row &r = sites()[i];

		if (r.name.compare(0, prefix.size(), prefix) != 0)
			continue;
		printf("%s\n", r.name.c_str());
		for (const std::string &order : weaker(r.site->operation)) {
			std::string tried;

			in = NULL;
			for (j = 0; j < all.size() && in == NULL; j++) {
				if (!hits[j].hit[i])
					continue;
				o = run(all[j], r.site, order, executions,
				    false);
				if (o.result != rl::test_result_success)
					in = all[j];
				tried += std::string(" ") + all[j]->name;
			}
			if (in == NULL)
				printf("\t%s - in%s\n", order.c_str(),
				    tried.c_str());
			else
				printf("\t%s %s\t(%s: %s, %llu)\n",
				    order.c_str(), in->name, kind(o), o.what,
				    (unsigned long long)o.executions);
		}
		fflush(stdout);
	}
}

} /* namespace */

extern "C" {

/*
 * What systm.h calls.
 */

uint64_t
mm_load(const volatile void *p, int size, struct mm_site *site)
{
	uint64_t v = 0;
	size_t off;
	cell *c;

	if (!tracking || !shared(p)) {
		__real_memcpy(&v, (const void *)p, size);
		return (v);
	}
	settle();
	off = offset(p);
	track(off, size, false, where(site));
	c = cell_find(off, size);
	{
		calmly calmly_;
		v = c->a()->load(site != NULL && !is_weak(site) ?
		    rl::mo_acquire : rl::mo_relaxed, where(site));
	}
	v = (v + c->base) & mask(c->size);
	return (v >> 8 * (off - c->off) & mask(size));
}

void
mm_store(volatile void *p, int size, uint64_t value, struct mm_site *site)
{
	uint64_t v;
	size_t off;
	cell *c;

	if (!tracking || !shared(p)) {
		__real_memcpy((void *)p, &value, size);
		return;
	}
	settle();
	off = offset(p);
	track(off, size, false, where(site));
	c = cell_find(off, size);
	{
		calmly calmly_;
		/* Switch threads before the value is merged, not after. */
		rl::ctx().sched();
	}
	calmly always(true);
	put(off, size, value);
	v = c->size == size ? value : get(c->off, c->size);
	c->a()->store((v - c->base) & mask(c->size),
	    site != NULL && !is_weak(site) ? rl::mo_release : rl::mo_relaxed,
	    where(site));
}

uint64_t
mm_add(volatile void *p, int size, uint64_t add, struct mm_site *site)
{
	uint64_t old = 0, v;
	size_t off;
	cell *c;

	if (!tracking || !shared(p)) {
		__real_memcpy(&old, (void *)p, size);
		v = old + add;
		__real_memcpy((void *)p, &v, size);
		return (old);
	}
	settle();
	off = offset(p);
	track(off, size, false, where(site));
	c = cell_find(off, size);
	{
		calmly calmly_;
		old = c->a()->fetch_add(add, site != NULL && !is_weak(site) ?
		    rl::mo_release : rl::mo_relaxed, where(site));
	}
	put(off, size, cell_last(c));
	return ((old + c->base) & mask(size));
}

uint64_t
mm_swap(volatile void *p, int size, uint64_t value)
{
	uint64_t old = 0;
	size_t off;
	cell *c;

	if (!tracking || !shared(p)) {
		__real_memcpy(&old, (void *)p, size);
		__real_memcpy((void *)p, &value, size);
		return (old);
	}
	settle();
	off = offset(p);
	track(off, size, false, where(NULL));
	c = cell_find(off, size);
	{
		calmly calmly_;
		old = c->a()->exchange((value - c->base) & mask(size),
		    rl::mo_relaxed, where(NULL));
	}
	put(off, size, cell_last(c));
	return ((old + c->base) & mask(size));
}

bool
mm_cmpset(volatile void *p, int size, uint64_t old, uint64_t value,
    struct mm_site *site)
{
	uint64_t v = 0;
	size_t off;
	cell *c;
	bool done;

	if (!tracking || !shared(p)) {
		__real_memcpy(&v, (void *)p, size);
		if (v != old)
			return (false);
		__real_memcpy((void *)p, &value, size);
		return (true);
	}
	settle();
	off = offset(p);
	track(off, size, false, where(site));
	c = cell_find(off, size);
	v = (old - c->base) & mask(size);
	{
		calmly calmly_;
		done = c->a()->compare_exchange(rl::bool_t<false>(), v,
		    (value - c->base) & mask(size), is_weak(site) ?
		    rl::mo_relaxed : rl::mo_acquire, rl::mo_relaxed,
		    where(site));
	}
	put(off, size, cell_last(c));
	return (done);
}

void
mm_fence(int order, struct mm_site *site)
{
	if (!tracking)
		return;
	settle();
	if (is_weak(site)) {
		if (strcmp(weak_order, "none") == 0)
			return;
		order = __ATOMIC_ACQ_REL;
	}
	calmly c;
	rl::atomic_thread_fence(order == __ATOMIC_SEQ_CST ? rl::mo_seq_cst :
	    order == __ATOMIC_ACQ_REL ? rl::mo_acq_rel :
	    order == __ATOMIC_ACQUIRE ? rl::mo_acquire : rl::mo_release,
	    where(site));
}

void
mm_fail(const char *what, const char *file, int line)
{
	snprintf(failure, sizeof(failure), "%s, %s:%d", what, base_name(file),
	    line);
	if (!rl::is_ctx())
		errx(1, "%s", failure);
	rl::ctx().fail_test(failure, rl::test_result_user_assert_failed,
	    rl::debug_info(what, file, line));
	abort();
}

/*
 * Scenarios.
 */

void
mm_set(struct mm_event *ev)
{
	event_add(event_find(ev), 1);
}

void
mm_wait(struct mm_event *ev)
{
	event *e = event_find(ev);

	settle();
	e->e->wait(false, false, $);
	event_take(e);
}

void
mm_clear(struct mm_event *ev)
{
	event_take(event_find(ev));
}

void
mm_wait_fd(int fd)
{
	settle();
	event_find(&fd_addr[fd - FD_FIRST])->e->wait(false, false, $);
}

void
mm_yield(void)
{
	if (!tracking)
		return;
	settle();
	rl::ctx().yield(1, $);
}

unsigned int
mm_rand(unsigned int n)
{
	return (rl::ctx().rand(n, rl::sched_type_user));
}

int
mm_thread(void)
{
	return (tracking ? self() : 0);
}

void *
mm_alloc(size_t size, size_t align)
{
	size_t at;

	at = (arena_used + align - 1) & ~(align - 1);
	if (at + size > ARENA)
		errx(1, "out of shared memory");
	arena_used = at + size;
	return (arena + at);
}

void
mm_words(void *p, size_t size)
{
	size_t off;

	for (off = offset(p); off < offset(p) + size; off += 8)
		word64[off / 8] = true;
}

/*
 * The C library.
 */

void *
__wrap_malloc(size_t size)
{
	return (setting_up ? mm_alloc(size, 16) : __real_malloc(size));
}

void *
__wrap_calloc(size_t n, size_t size)
{
	void *p;

	if (setting_up)
		return (mm_alloc(n * size, 64));
	p = __real_malloc(n * size);
	if (p != NULL)
		__real_memset(p, 0, n * size);
	return (p);
}

void *
__wrap_aligned_alloc(size_t align, size_t size)
{
	return (mm_alloc(size, align));
}

void
__wrap_free(void *p)
{
	if (!shared(p))
		__real_free(p);
}

void *
__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	(void)addr; (void)prot; (void)flags; (void)fd; (void)off;
	return (mm_alloc(len, 4096));
}

int
__wrap_munmap(void *addr, size_t len)
{
	(void)addr; (void)len;
	return (0);
}

int
__wrap_eventfd(unsigned int n, int flags)
{
	(void)n; (void)flags;
	event_find(&fd_addr[nfds]);
	return (FD_FIRST + nfds++);
}

ssize_t
__real_read(int fd, void *buf, size_t len);

ssize_t
__wrap_read(int fd, void *buf, size_t len)
{
	uint64_t n;

	if (fd < FD_FIRST)
		return (__real_read(fd, buf, len));
	n = event_take(event_find(&fd_addr[fd - FD_FIRST]));
	if (n == 0)
		return (-1);
	__real_memcpy(buf, &n, sizeof(n));
	return (sizeof(n));
}

ssize_t
__real_write(int fd, const void *buf, size_t len);

ssize_t
__wrap_write(int fd, const void *buf, size_t len)
{
	uint64_t n;

	if (fd < FD_FIRST)
		return (__real_write(fd, buf, len));
	__real_memcpy(&n, buf, sizeof(n));
	event_add(event_find(&fd_addr[fd - FD_FIRST]), n);
	return (sizeof(n));
}

/* A random seed would make executions differ. */
int
__wrap_getentropy(void *buf, size_t len)
{
	__real_memset(buf, 0x5a, len);
	return (0);
}

int
__wrap_sched_yield(void)
{
	mm_yield();
	return (0);
}

int
__wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	(void)attr;
	(void)lock_find(m);
	return (0);
}

int
__wrap_pthread_mutex_destroy(pthread_mutex_t *m)
{
	(void)m;
	return (0);
}

int
__wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	lock_take(lock_find(m));
	return (0);
}

int
__wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
	return (lock_try(lock_find(m)) ? 0 : EBUSY);
}

int
__wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
	lock_drop(lock_find(m));
	return (0);
}

int
pthread_mutex_isowned_np(pthread_mutex_t *m)
{
	return (lock_find(m)->owner == mm_thread());
}

void *
__wrap_memcpy(void *dst, const void *src, size_t len)
{
	plain(src, len, false, __builtin_return_address(0));
	plain(dst, len, true, __builtin_return_address(0));
	return (__real_memcpy(dst, src, len));
}

void *
__wrap_memmove(void *dst, const void *src, size_t len)
{
	plain(src, len, false, __builtin_return_address(0));
	plain(dst, len, true, __builtin_return_address(0));
	return (__real_memmove(dst, src, len));
}

void *
__wrap_memset(void *dst, int c, size_t len)
{
	plain(dst, len, true, __builtin_return_address(0));
	return (__real_memset(dst, c, len));
}

int
__wrap_memcmp(const void *a, const void *b, size_t len)
{
	plain(a, len, false, __builtin_return_address(0));
	plain(b, len, false, __builtin_return_address(0));
	return (__real_memcmp(a, b, len));
}

/*
 * What clang calls before each plain access.
 */

#define	ACCESS(n)							\
void __tsan_read##n(void *p)						\
{									\
	plain(p, n, false, __builtin_return_address(0));		\
}									\
void __tsan_write##n(void *p)						\
{									\
	plain(p, n, true, __builtin_return_address(0));			\
}									\
void __tsan_unaligned_read##n(void *p)					\
{									\
	plain(p, n, false, __builtin_return_address(0));		\
}									\
void __tsan_unaligned_write##n(void *p)					\
{									\
	plain(p, n, true, __builtin_return_address(0));			\
}
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void
__tsan_init(void)
{
}

void
__tsan_func_entry(void *pc)
{
	(void)pc;
}

void
__tsan_func_exit(void)
{
}

void *
__tsan_memcpy(void *dst, const void *src, size_t len)
{
	return (__wrap_memcpy(dst, src, len));
}

void *
__tsan_memmove(void *dst, const void *src, size_t len)
{
	return (__wrap_memmove(dst, src, len));
}

void *
__tsan_memset(void *dst, int c, size_t len)
{
	return (__wrap_memset(dst, c, len));
}

} /* extern "C" */

static void
usage(void)
{
	fprintf(stderr, "usage: relacy -l\n"
	    "       relacy [-v] [-n executions] [-w site -m order] scenario\n"
	    "       relacy [-n executions] -t table [scenario]\n"
	    "       relacy [-n executions] -g [prefix]\n");
	exit(2);
}

int
main(int argc, char *argv[])
{
	const struct mm_scenario *s;
	const struct mm_site *site = NULL;
	const char *order = "", *table = NULL;
	uint64_t executions = 20000;
	bool generate = false, verbose = false;
	outcome o;
	int c;

	while ((c = getopt(argc, argv, "glm:n:t:vw:")) != -1) {
		switch (c) {
		case 'g':
			generate = true;
			break;
		case 'l':
			for (const site_row &r : sites())
				printf("%s\n", r.name.c_str());
			return (0);
		case 'm':
			order = optarg;
			break;
		case 'n':
			executions = strtoull(optarg, NULL, 10);
			break;
		case 't':
			table = optarg;
			break;
		case 'v':
			verbose = true;
			break;
		case 'w':
			site = site_find(optarg);
			if (site == NULL)
				errx(2, "%s: no such site", optarg);
			break;
		default:
			usage();
		}
	}
	if (generate) {
		table_search(executions, optind < argc ? argv[optind] : "");
		return (0);
	}
	if (argc == optind && table != NULL)
		return (table_complete(table));
	if (argc != optind + 1)
		usage();
	s = scenario_find(argv[optind]);
	if (s == NULL)
		errx(2, "%s: no such scenario", argv[optind]);
	if (table != NULL)
		return (table_check(table, s, executions));
	o = run(s, site, order, executions, verbose);
	printf("%s: %s (%s, %llu executions)\n", s->name, kind(o), o.what,
	    (unsigned long long)o.executions);
	return (o.result == rl::test_result_success ? 0 : 1);
}
