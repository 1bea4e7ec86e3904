-- Grants a piece of the time axis of one limited key.
--
-- KEYS[1]  the key; its value is its TAT, "<us>:<frac>": microseconds of the server's clock, and 2^-26 of them
-- ARGV     Tu Tf   one unit's time, rounded up
--          Mu Mf   how far the TAT may lie ahead of now after a grant
--          want    units wanted, at least min
--          min     fewest units that are of use
--          spent   units that were admitted before asking; always charged
--          grace   us; above 0 the node lived on its share: the key starts from its full debt, and gives nothing for
--                  this long, while the other nodes come back too
--          clamp   us; a lead above it shows that the server's clock was set back: it counts as the full debt
-- Returns  {units granted, lead before them in us, us until min units exist (0 where granted), the TAT after them
--          or '' where nothing was granted}. All times are relative: no node needs the server's clock.
--
-- Every quantity is a pair of integers below 2^53, so every step in doubles is exact; a pair is normal where
-- 0 <= frac < 2^26. Nothing is written where nothing changes: a refused ask costs no replication and no log.
local F = 67108864
local arg = {}
for i = 1, 9 do arg[i] = tonumber(ARGV[i]) end
local Tu, Tf, Mu, Mf, want, min, spent, grace, clamp = unpack(arg)

local function normal(u, f)
  local carry = math.floor(f / F)
  return u + carry, f - carry * F
end
local function above(au, af, bu, bf) return au > bu or (au == bu and af > bf) end
local function time_of(n) return normal(Tu * n, Tf * n) end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local value = redis.call('GET', KEYS[1])
local lead, frac, changed = 0, 0, false
if value then
  local u, f = string.match(value, '^(%d+):(%d+)$')
  if not u then return redis.error_reply('TATCELL the value of this key is not a TAT') end
  lead, frac = u - now, tonumber(f)
  if lead < 0 then lead, frac = 0, 0
  elseif lead > clamp then lead, frac, changed = Mu, Mf, true end
end
if spent > 0 then
  local u, f = time_of(spent)
  lead, frac = normal(lead + u, frac + f)
  changed = true
end
if grace > 0 and above(Mu, Mf, lead, frac) then lead, frac, changed = Mu + grace, Mf, true end

-- The most units that fit: a quotient of doubles is off by less than one, so the one above it is tried first.
local room, room_frac = normal(Mu - lead, Mf - frac)
local fit = 0
if room >= 0 then
  fit = math.min(math.floor((room + room_frac / F) / (Tu + Tf / F)) + 1, F - 1)
  while fit > 0 do
    local u, f = time_of(fit)
    if not above(u, f, room, room_frac) then break end
    fit = fit - 1
  end
end

local before, granted, retry, stamp = lead, 0, 0, ''
if fit >= min then
  -- Never more than half of what is left: the rest is for other nodes.
  granted = math.min(want, math.max(min, math.floor(fit / 2)))
  local u, f = time_of(granted)
  lead, frac = normal(lead + u, frac + f)
  changed = true
  stamp = string.format('%.0f:%.0f', now + lead, frac)
else
  local u, f = time_of(min)
  retry = lead + u - Mu + math.ceil((frac + f - Mf) / F)
end
if changed then
  local text = string.format('%.0f:%.0f', now + lead, frac)
  redis.call('SET', KEYS[1], text, 'PX', math.ceil((lead + 1) / 1000) + 1)
end
return {granted, before, retry, stamp}
