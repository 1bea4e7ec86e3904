-- Grants a piece of the time axis of one limited key.
--
-- KEYS[1]  the key; its value is its TAT, "<us>:<frac>:<Tu>:<Tf>:<version>": microseconds of the server's clock and
--          2^-26 of them; then one unit's time and the limit's version as of the last write
-- ARGV     Tu Tf   one unit's time, rounded up
--          Mu Mf   how far the TAT may lie ahead of now after a grant
--          want    units wanted, at least min
--          min     the fewest units that are useful
--          spent   units that were admitted before asking; always charged
--          grace   us; above 0 if the node lived on its share: the key starts from its full debt, and grants nothing
--                  for this long, while the other nodes come back too
--          clamp   us; a lead above it means that the server's clock was set back: it counts as the full debt
--          version of the limit
--          id      of this call; optional
-- Returns  {units granted, lead before them in us, us until min units exist (0 if granted), the TAT after them or ''
--          if nothing was granted, id}. All times are relative, so no node needs the server's clock.
--
-- Every quantity is a pair of integers below 2^53, so every step in doubles is exact; a pair is normal if 0 <= frac <
-- 2^26. A call that changes nothing writes nothing: a refused ask costs no replication and no log. There is one
-- exception to both: a debt from before a change of the limit keeps its units, their time is rounded up, and it is
-- written once. It is cut to the full debt. An ask that is itself from before the change, and comes late, cuts nothing,
-- and writes only what it is granted: else a second such ask would take the debt for its own, and cut it.
local F = 67108864
local Tu, Tf, Mu, Mf = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local want, min, spent = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local grace, clamp, version = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])

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
  local u, f, su, sf, of = string.match(value, '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
  if not u then return redis.error_reply('TATCELL the value of this key is not a TAT of this version') end
  lead, frac = u - now, tonumber(f)
  su, sf = tonumber(su), tonumber(sf)
  local late = version < tonumber(of)
  if lead < 0 then lead, frac = 0, 0
  elseif su ~= Tu or sf ~= Tf then
    -- Each step is off by at most 2^-53 of its result.
    local longer = (Tu + Tf / F) / (su + sf / F) * (1 + 2 ^ -50)
    if lead + frac > 0 then lead, frac, changed = math.min(math.ceil((lead + 1) * longer), 2 ^ 52), 0, not late end
    if not late and above(lead, frac, Mu, Mf) then lead, frac = Mu, Mf end
  elseif lead > clamp and not late then lead, frac, changed = Mu, Mf, true end
end
if spent > 0 then
  local u, f = time_of(spent)
  lead, frac = normal(lead + u, frac + f)
  changed = true
end
if grace > 0 and above(Mu, Mf, lead, frac) then lead, frac, changed = Mu + grace, Mf, true end

-- The most units that fit. A quotient of doubles is off by less than one, so the next higher one is tried first.
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

local before, granted, retry, text = lead, 0, 0, nil
if fit >= min then
  -- Never more than half of what is left: the rest is for other nodes.
  granted = math.min(want, math.max(min, math.floor(fit / 2)))
  local u, f = time_of(granted)
  lead, frac = normal(lead + u, frac + f)
  changed = true
else
  local u, f = time_of(min)
  retry = lead + u - Mu + math.ceil((frac + f - Mf) / F)
end
if changed then
  text = string.format('%.0f:%.0f:%.0f:%.0f:%.0f', now + lead, frac, Tu, Tf, version)
  redis.call('SET', KEYS[1], text, 'PX', math.ceil((lead + 1) / 1000) + 1)
end
-- Without an id, the table ends before it.
return {granted, before, retry, granted > 0 and text or '', ARGV[11]}
