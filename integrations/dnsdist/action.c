/*
 * action.c - what dnsdist calls for every question: one C function, without a line of Lua.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * tatcell.lua makes the table and the ladder, and loads this file once for each thread. dnsdist calls a function of
 * Lua; that may be one of C, which spares the interpreter and its conversions of every argument.
 */

#define _POSIX_C_SOURCE 200809L

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <lauxlib.h>
#include <lua.h>

#include <tatcell.h>

/* Of dnsdist, which exports them for the FFI of Lua. */
struct dnsdist_ffi_dnsquestion_t;
void dnsdist_ffi_dnsquestion_get_remoteaddr(const struct dnsdist_ffi_dnsquestion_t *dq, const void **addr,
    size_t *addrSize);
bool dnsdist_ffi_dnsquestion_get_tcp(const struct dnsdist_ffi_dnsquestion_t *dq);

/* What an action asks and answers. tatcell.lua declares the same and fills it in. */
struct action {
    const tatcell_ladder_t *ladder;
    const tatcell_limit_t *alone;   /* the limit of an address without its networks; NULL: the ladder decides */
    const tatcell_table_t *limits;
    tatcell_sweeper_t *sweeper;     /* of the table */
    tatcell_slip_t *slip;
    uint64_t *undecided;            /* how many questions got no verdict; threads may lose a count to one another */
    uint32_t every;                 /* every n-th refused question of UDP is truncated; 0: none */
    int32_t pass, refuse, truncate, without_verdict;
};

static int32_t
decide(const struct action *a, const struct dnsdist_ffi_dnsquestion_t *dq)
{
    int32_t rc;
    size_t length;
    uint64_t now;
    const void *address;
    struct timespec clock;

    dnsdist_ffi_dnsquestion_get_remoteaddr(dq, &address, &length);
    (void)clock_gettime(CLOCK_MONOTONIC, &clock);
    now = (uint64_t)clock.tv_sec * 1000000000U + (uint64_t)clock.tv_nsec;

    (void)tatcell_table_sweep_due(a->limits, a->sweeper, now);
    /* Of IPv6 alone, the first 64 bits are one client. */
    rc = a->alone ? tatcell_table_check(a->limits, a->alone, now, address, length == 16 ? 8 : length, 1, NULL)
                  : tatcell_ladder_check(a->ladder, a->limits, now, address, length, 1, NULL, NULL, NULL);

    if (rc == TATCELL_PASS) return a->pass;
    if (rc < 0 || rc == TATCELL_CONTENDED) {
        ++*a->undecided;
        return a->without_verdict;
    }
    if (a->every > 0 && !dnsdist_ffi_dnsquestion_get_tcp(dq) && tatcell_slip_check(a->slip, a->every) == TATCELL_PASS)
        return a->truncate;
    return a->refuse;
}

static int
answer(lua_State *L)
{
    lua_pushinteger(L, decide(lua_touserdata(L, lua_upvalueindex(1)), lua_touserdata(L, 1)));
    return 1;
}

int tatcell_action(lua_State *L);

/* tatcell_action("0x..."): the function of the action at this address, which lives as long as dnsdist. */
int
tatcell_action(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)(uintptr_t)strtoull(luaL_checkstring(L, 1), NULL, 16));
    lua_pushcclosure(L, answer, 1);
    return 1;
}
