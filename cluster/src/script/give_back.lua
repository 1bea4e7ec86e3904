-- Gives back the last units of a grant: only while the axis still ends where that grant left it, so that nobody was
-- granted anything after it.
--
-- KEYS[1]  the key
-- ARGV     the TAT that the grant returned, Tu Tf = one unit's time, units
-- Returns  the units taken back: all or 0
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local F, units = 67108864, tonumber(ARGV[4])
local u, f = string.match(ARGV[1], '^(%d+):(%d+)$')
local rest = f - tonumber(ARGV[3]) * units
local carry = math.floor(rest / F)
local text = string.format('%.0f:%.0f', u - tonumber(ARGV[2]) * units + carry, rest - carry * F)
redis.call('SET', KEYS[1], text, 'KEEPTTL')
return units
