/**
 * The window of `sliding-window.ts` in Redis: one hash for each key, one call for any number of
 * requests, each of which finds what the one before it left, and nothing in between that another
 * could see. Replicas agree on the time as it is the server's.
 *
 * The hash: `o` and `n`, the oldest and the newest bucket that is not empty; `t`, their total; and
 * for each bucket its count, at its number modulo 61. It ends when its newest bucket leaves the
 * window.
 *
 * The server's clock may be set back, or another server, whose clock is behind, may follow. Within
 * a window the newest bucket stays the current one until time has caught up, which counts requests
 * for longer, never for less; a hash that is further ahead than that is of no use and begun anew.
 *
 * KEYS the hash of each request; ARGV[1] the time in milliseconds, empty for the server's, then for
 * each request its limit and the milliseconds of a bucket. Returns for each, one behind the other,
 * whether it is allowed, what remains, and the milliseconds until the oldest bucket leaves the
 * window.
 */
export const TAKE_SCRIPT = `
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local function take(key, requests, width)
  local bucket = math.floor(now / width)
  local state = redis.call('HMGET', key, 'o', 'n', 't')
  local oldest, newest, total = tonumber(state[1]), tonumber(state[2]), tonumber(state[3])

  if not total or newest <= bucket - 61 or newest > bucket + 61 then
    if total then redis.call('DEL', key) end
    oldest, newest, total = bucket, bucket - 1, 0
  end
  if bucket < newest then bucket = newest end

  if oldest <= bucket - 61 then
    local left = {}
    while oldest <= bucket - 61 do
      left[#left + 1] = oldest % 61
      oldest = oldest + 1
    end
    for _, n in ipairs(redis.call('HMGET', key, unpack(left))) do
      if n then total = total - n end
    end
    redis.call('HDEL', key, unpack(left))
    while oldest < newest and redis.call('HEXISTS', key, oldest % 61) == 0 do oldest = oldest + 1 end
    redis.call('HSET', key, 'o', oldest, 't', total)
  end

  local allowed = 0
  if total < requests then
    allowed = 1
    total = total + 1
    redis.call('HINCRBY', key, bucket % 61, 1)
    if newest < bucket then
      redis.call('HSET', key, 'o', oldest, 'n', bucket, 't', total)
      redis.call('PEXPIRE', key, 61 * width)
    else
      redis.call('HINCRBY', key, 't', 1)
    end
  end
  return allowed, math.max(0, requests - total), (oldest + 61) * width - now
end

local answers = {}
for i, key in ipairs(KEYS) do
  local at = 3 * i
  answers[at - 2], answers[at - 1], answers[at] = take(key, tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1]))
end
return answers
`;
