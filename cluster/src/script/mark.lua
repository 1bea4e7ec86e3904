-- Keeps the mark that tells all nodes the parameters of a limit, or changes the limit.
--
-- KEYS[1]  the mark of a limit: "f<format>;<version>;<from>;<next>;<before>"
--            format   of the marks and keys; the marks of tatcell 0.3 have none. A mark of another format is refused,
--                     and stays as it is
--            version  higher by one with each change
--                     0 if only nodes that open have written it
--            from     microseconds of the server's clock; before it the limit is `before`, and from then on `next`. It
--                     becomes 0 as soon as a node has seen `next` in force, so a clock that is set back takes nothing
--                     back
-- ARGV     ms      how long the mark stays
--          version, next, before, ahead
--                  what this node knows; it is written if there is no mark, or an older one. ahead is the us until
--                  `next` is in force, or 0 if it is in force by this node's clock
--          change, delay
--                  '', or the new limit: it is in force `delay` us from now, if the mark has this node's version and
--                  is in force
--          id      of this call; optional
-- Returns  {version, us until `next` is in force (0: it is), next, before, id}
local FORMAT = '2'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local version, from, next, before
local value = redis.call('GET', KEYS[1])
if value then
  local format, rest = string.match(value, '^f(%d+);(.*)$')
  if format ~= FORMAT then
    return redis.error_reply('TATCELLFORMAT the mark ' .. KEYS[1] .. ' has ' .. (format and 'format ' .. format or
      'no format, as in tatcell 0.3') .. '; this node has format ' .. FORMAT)
  end
  version, from, next, before = string.match(rest, '^(%d+);(%d+);([^;]*);([^;]*)$')
  if not version then return redis.error_reply('TATCELL the value of ' .. KEYS[1] .. ' is not a mark') end
  version, from = tonumber(version), tonumber(from)
end
local mine = tonumber(ARGV[2])
if not value or version < mine then
  version, next, before = mine, ARGV[3], ARGV[4]
  from = now + tonumber(ARGV[5])
elseif version == mine and next == ARGV[3] and ARGV[5] == '0' then
  from = 0
end
if from <= now then from = 0 end
if ARGV[6] ~= '' and version == mine and from <= now then
  version, before, next = version + 1, next, ARGV[6]
  from = now + tonumber(ARGV[7])
end
local text = string.format('f%s;%.0f;%.0f;%s;%s', FORMAT, version, from, next, before)
redis.call('SET', KEYS[1], text, 'PX', ARGV[1])
return {version, math.max(0, from - now), next, before, ARGV[8]}
