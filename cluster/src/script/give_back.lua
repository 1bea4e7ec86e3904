-- Gives back the last units of a grant, but only while the axis still ends where that grant left it: then nothing was
-- granted after it.
--
-- KEYS[1]  the key
-- ARGV     the value that the grant returned, units, and the id of this call (optional)
-- Returns  {the units taken back: all or 0, id}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {0, ARGV[3]} end
local F, units = 67108864, tonumber(ARGV[2])
local u, f, su, sf, version = string.match(ARGV[1], '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
local rest = f - sf * units
local carry = math.floor(rest / F)
local text = string.format('%.0f:%.0f:%s:%s:%s', u - su * units + carry, rest - carry * F, su, sf, version)
redis.call('SET', KEYS[1], text, 'KEEPTTL')
return {units, ARGV[3]}
