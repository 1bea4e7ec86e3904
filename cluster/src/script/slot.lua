-- Claims, renews or releases the right to one of the N reserves.
--
-- KEYS[1]  the slot
-- ARGV     the holder, for how many ms it holds the slot (0 releases it), and the id of this call (optional)
-- Returns  {1 claimed, 2 renewed or released, 0 another one holds it (or nobody did, when released), id}
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return {0, ARGV[3]} end
if ARGV[2] == '0' then return {held and redis.call('DEL', KEYS[1]) * 2 or 0, ARGV[3]} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {held and 2 or 1, ARGV[3]}
