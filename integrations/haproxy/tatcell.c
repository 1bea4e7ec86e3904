/*
 * tatcell.c - limits for the Lua of HAProxy (Lua 5.3 or 5.4), by tatcell.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   local tatcell = require "tatcell"
 *   local limits = tatcell.new { name = "clients", rate = 10, burst = 20, slots = 65536 }
 *   local ok, retry_after = limits:check(key)
 *
 * HAProxy loads a Lua for each of its threads (lua-load-per-thread). Tables belong to the process and have names: the
 * first thread that asks for a name makes the table, the others get the same one. Nothing is locked but the making.
 */

#include <pthread.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include <tatcell.h>
#include <tatcell_host.h>

#include "limits.h"

#define METATABLE "tatcell.limits"

static struct limits all[MOST];
static int made;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static lua_Integer
field(lua_State *L, const char *name, lua_Integer missing)
{
    int whole;
    lua_Integer n = missing;

    lua_getfield(L, 1, name);
    if (!lua_isnil(L, -1)) {
        n = lua_tointegerx(L, -1, &whole);
        if (!whole || n < 1) n = 0;
    }
    lua_pop(L, 1);
    if (n == 0) luaL_error(L, "tatcell: %s must be a whole number above 0", name);
    return n;
}

/* A rate is a number in `per` seconds, or a limit as text. An own burst replaces that of the rate. */
static void
read_limit(lua_State *L, tatcell_limit_spec_t *spec)
{
    size_t length, at = 0;
    const char *text;

    if (lua_getfield(L, 1, "rate") != LUA_TSTRING || lua_isnumber(L, -1))
        lua_pushfstring(L, "%I/%Is", (LUAI_UACINT)field(L, "rate", 0), (LUAI_UACINT)field(L, "per", 1));
    else if (lua_getfield(L, 1, "per") != LUA_TNIL)
        luaL_error(L, "tatcell: per stands next to a rate that is text: write it into the text, as in \"5/15min\"");
    else
        lua_pop(L, 1);
    text = lua_tolstring(L, -1, &length);
    *spec = (tatcell_limit_spec_t)TATCELL_LIMIT_SPEC_INIT;
    if (tatcell_limit_spec_parse(spec, text, length, SECOND, &at) != 0)
        luaL_error(L, "tatcell: rate \"%s\" at byte %I, \"%s\": write a number, or text such as \"10/s burst 20\"",
                   text, (LUAI_UACINT)at, text + at);
    spec->burst = (uint64_t)field(L, "burst", (lua_Integer)spec->burst);
    lua_settop(L, 1);
}

/* Makes the table; returns what is wrong, or NULL. */
static const char *
make(struct limits *l)
{
    static const char none[] = "no memory for the slots (use fewer), or no secret bytes";
    uint8_t seed[16];
    int32_t rc;
    tatcell_host_memory_t memory = TATCELL_HOST_MEMORY_INIT;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;

    options.fastest = &l->spec;
    options.seed = seed;
    options.policy = (uint32_t)l->policy;
    if (tatcell_hash_available(TATCELL_HASH_AES) == 0) options.hash = TATCELL_HASH_AES;

    if (tatcell_host_random(seed, sizeof seed, NULL) != 0) return none;
    if (tatcell_host_memory_map(tatcell_table_bytes((uint64_t)l->slots), 0, &memory) != 0) return none;

    rc = tatcell_table_init(&l->table, memory.memory, memory.bytes, &options);
    if (rc == 0) rc = tatcell_limit_init_table(&l->limit, &l->table, &l->spec);
    if (rc == 0) return NULL;
    (void)tatcell_host_memory_unmap(&memory);
    if (rc == TATCELL_ERR_SPAN) return "rate and burst do not fit one word: use smaller ones";
    return tatcell_strerror(rc);
}

/* The table of this name, made if it is the first; why is set where there can be none. */
static struct limits *
find_or_make(const struct limits *asked, const char **why)
{
    int i;
    struct limits *found = NULL;

    *why = NULL;
    pthread_mutex_lock(&making);
    for (i = 0; i < made && found == NULL; i++)
        if (strcmp(all[i].name, asked->name) == 0) found = &all[i];

    if (found != NULL) {
        if (found->spec.units != asked->spec.units || found->spec.period != asked->spec.period ||
            found->spec.burst != asked->spec.burst || found->slots != asked->slots || found->policy != asked->policy)
            *why = "another call gave this name another rate, per, burst, slots or policy: give the same";
    } else if (made == MOST) {
        *why = "there are more than 32 names: use one of them";
    } else {
        found = &all[made];
        *found = *asked;
        *why = make(found);
        if (*why == NULL) made++;
    }
    pthread_mutex_unlock(&making);
    return found;
}

/* What text is among these; -1: none of them. */
static int
place(const char *const names[], const char *text)
{
    int i;

    for (i = 0; text != NULL && names[i] != NULL; i++)
        if (strcmp(names[i], text) == 0) return i;
    return -1;
}

/* A misspelled option would leave the one that was meant as it is. */
static void
all_known(lua_State *L)
{
    static const char *const options[] = {"name", "rate", "per", "burst", "slots", "policy", NULL};

    lua_pushnil(L);
    while (lua_next(L, 1) != 0) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING || place(options, lua_tostring(L, -1)) < 0)
            luaL_error(L, "tatcell: unknown option %s: use name, rate, per, burst, slots, policy",
                       luaL_tolstring(L, -1, NULL));
    }
}

/* tatcell.new { name =, rate =, per = 1, burst = that of the rate, slots = 65536, policy = "admit" } */
static int
new_limits(lua_State *L)
{
    static const char *const policies[] = {"admit", "inherit", "deny", "sampled", NULL};
    size_t length;
    const char *name, *why;
    struct limits asked, **handle;

    luaL_checktype(L, 1, LUA_TTABLE);
    all_known(L);
    memset(&asked, 0, sizeof asked);

    lua_getfield(L, 1, "name");
    name = lua_tolstring(L, -1, &length);
    if (name == NULL || length == 0 || length >= NAME || strlen(name) != length)
        return luaL_error(L, "tatcell: name must be text of 1 to %d bytes", NAME - 1);
    memcpy(asked.name, name, length);
    lua_pop(L, 1);

    read_limit(L, &asked.spec);
    asked.slots = field(L, "slots", 65536);
    lua_getfield(L, 1, "policy");
    asked.policy = lua_isnil(L, -1) ? 0 : place(policies, lua_tostring(L, -1));
    if (asked.policy < 0) return luaL_error(L, "tatcell: policy must be admit, inherit, deny or sampled");
    lua_pop(L, 1);

    handle = lua_newuserdata(L, sizeof *handle);
    *handle = find_or_make(&asked, &why);
    if (why != NULL) return luaL_error(L, "tatcell: %s: %s", asked.name, why);
    luaL_setmetatable(L, METATABLE);
    return 1;
}

/* limits:check(key, cost = 1): true; false and seconds; false and nil for never; nil and "contended" */
static int
check(lua_State *L)
{
    int32_t rc;
    size_t length;
    uint64_t now = 0, retry_after;
    struct limits *l = *(struct limits **)luaL_checkudata(L, 1, METATABLE);
    const char *key = luaL_checklstring(L, 2, &length);
    lua_Integer cost = luaL_optinteger(L, 3, 1);

    luaL_argcheck(L, cost >= 0, 3, "a cost must be at least 0");
    (void)tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &now, NULL);
    (void)tatcell_table_sweep_due(&l->table, &l->sweeper, now);
    rc = tatcell_table_check(&l->table, &l->limit, now, key, length, (uint64_t)cost, &retry_after);

    switch (rc) {
    case TATCELL_PASS:
        lua_pushboolean(L, 1);
        return 1;
    case TATCELL_NON_CONFORMING:
        lua_pushboolean(L, 0);
        lua_pushnumber(L, (lua_Number)retry_after / (lua_Number)SECOND);
        return 2;
    case TATCELL_NEVER:
        lua_pushboolean(L, 0);
        lua_pushnil(L);
        return 2;
    case TATCELL_CONTENDED:
        lua_pushnil(L);
        lua_pushliteral(L, "contended");
        return 2;
    default:
        return luaL_error(L, "tatcell: %s", tatcell_strerror(rc));
    }
}

/* limits:stats(): live keys and slots */
static int
stats(lua_State *L)
{
    uint64_t now = 0;
    tatcell_stats_t s = TATCELL_STATS_INIT;
    struct limits *l = *(struct limits **)luaL_checkudata(L, 1, METATABLE);

    (void)tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &now, NULL);
    (void)tatcell_table_sweep_due(&l->table, &l->sweeper, now);
    (void)tatcell_table_stats(&l->table, now, &s);
    lua_pushinteger(L, (lua_Integer)s.live);
    lua_pushinteger(L, (lua_Integer)s.slots);
    return 2;
}

#ifdef HAPROXY_BRANCH
/* limits:converter(name, refuse_undecided): makes lua.NAME a converter of C. Threads load the file side by side. */
static int
converter(lua_State *L)
{
    const char *why;
    struct limits *l = *(struct limits **)luaL_checkudata(L, 1, METATABLE);
    const char *name = luaL_checkstring(L, 2);
    int refuse_undecided = lua_toboolean(L, 3);

    pthread_mutex_lock(&making);
    why = register_converter(l, name, refuse_undecided);
    pthread_mutex_unlock(&making);
    return why == NULL ? 0 : luaL_error(L, "tatcell: %s", why);
}
#endif

int luaopen_tatcell(lua_State *L);

int
luaopen_tatcell(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"check", check},
        {"stats", stats},
#ifdef HAPROXY_BRANCH
        {"converter", converter},
#endif
        {NULL, NULL},
    };
    static const luaL_Reg functions[] = {{"new", new_limits}, {NULL, NULL}};

    luaL_newmetatable(L, METATABLE);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
