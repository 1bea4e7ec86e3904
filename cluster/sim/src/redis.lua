-- What a script sees of Redis, for one key: `redis.call` with TIME, GET, DEL and SET (PX, KEEPTTL), `error_reply`.
-- Returns the function that runs a script.
local time, key, value = {}, nil, nil
-- What the script wrote: nil (nothing), true (SET), false (DEL); with the options of SET.
local written, option, ms
local OK = {ok = 'OK'}

local function write(how, new, with, of)
  if written ~= nil then error('a script writes once') end
  written, value, option, ms = how, new, with, of
end

local function call(name, of, new, with, with_ms, more)
  if name == 'TIME' then return time end
  if of ~= key or more ~= nil then error('Unknown Redis command called from script, or one for another key') end
  if name == 'GET' then return value end
  if name == 'SET' then
    write(true, new, with, with_ms)
    return OK
  end
  if name == 'DEL' then
    local was = value
    write(false, false)
    return was and 1 or 0
  end
  error('Unknown Redis command called from script')
end

redis = {call = call, error_reply = function(text) return {err = text} end}

-- Returns what was written, the value, the options; then the kind of the reply, and its items.
return function(script, seconds, micros, name, was)
  time[1], time[2] = seconds, micros
  key, value = name, was
  written, option, ms = nil, nil, nil
  local reply = script()
  if type(reply) ~= 'table' then return written, value, option, ms, 'one', reply end
  if reply.err then return written, value, option, ms, 'error', reply.err end
  return written, value, option, ms, 'list', unpack(reply)
end
