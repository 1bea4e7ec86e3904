-- What a node of 0.3 does with the mark of a limit, in one script: SET NX PX, GET, and PEXPIRE if the text is its own.
-- The mark is the text of the parameters. No change of the limit is known to it.
--
-- KEYS and ARGV are those of this version's script, and so is the reply: {1, 0, next, before, id}.
local mine = string.gsub(ARGV[3], '^(.-), (reserve [^,]*), (%d+ nodes), changes take.*$', '%1, %3, %2')
local value = redis.call('GET', KEYS[1])
if value and value ~= mine then
  return redis.error_reply('TATCELLFORMAT ' .. KEYS[1] .. ' is in use with other parameters')
end
redis.call('SET', KEYS[1], mine, 'PX', ARGV[1])
return {1, 0, ARGV[3], ARGV[3], ARGV[8]}
