package redisturns

import "github.com/redis/go-redis/v9"

// The state of an origin is one string under one key: times in microseconds of the server's
// clock, packed as MessagePack. All but the first are relative to the latest start or end.
//
//	last     the latest start or end of a request
//	granted  the latest Visit, not yet used perhaps
//	resume   the end of the pause
//	strain   failures, less the good answers since
//	held     places: name and end of lease, in turn
//	queue    who waits: name and when it was told to ask, in turn
//
// A name begins with the Store that has the turn: the last part of the channel on which it
// listens.
//
// A time in the far future is of a server whose clock was ahead (a failover). It counts as now,
// or as far off as it can be.
const preamble = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local id, delay, places, lease = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local day, grace = 86400000000, 250000
local last, granted, resume, strain, held, queue = 0, 0, 0, 0, {}, {}

local packed = redis.pcall('GET', KEYS[1])
if type(packed) == 'string' then
	local ok, l, g, r, s, h, q = pcall(cmsgpack.unpack, packed)
	if ok and type(q) == 'table' then
		last, strain = l, s
		if last > now then last = now end
		if g ~= 0 then granted = math.min(l + g, now) end
		if r ~= 0 then resume = math.min(l + r, now + day) end
		for i = 1, #h, 2 do
			local till = math.min(l + h[i + 1], now + day)
			if till > now then
				held[#held + 1], held[#held + 2] = h[i], till
			elseif till > last then
				last = till -- its process died: the request may have gone on until now
			end
		end
		for i = 1, #q, 2 do
			local due = math.min(l + q[i + 1], now + day)
			if due + grace > now or q[i] == id then
				queue[#queue + 1], queue[#queue + 2] = q[i], due
			end
		end
	end
end

local function remove(list)
	for i = 1, #list, 2 do
		if list[i] == id then
			table.remove(list, i)
			return (i + 1) / 2, table.remove(list, i)
		end
	end
	return nil
end

local function earliest(from)
	local at = now
	if from > 0 and from + delay > at then at = from + delay end
	if resume > at then at = resume end
	return at
end

local function pause()
	local unit = math.min(math.max(delay, 1000000), 3600000000)
	return math.min(unit * 2 ^ math.min(strain, 13), 3600000000)
end

local function full() return places > 0 and #held >= 2 * places end

-- save keeps the state for as long as it matters. The first in the queue is told if it can ask
-- sooner than it knows.
local function save()
	if #queue > 0 and not full() then
		local at = earliest(math.max(last, granted))
		if queue[2] > at + 1000 then
			queue[2] = at
			local store = string.sub(queue[1], 1, 8)
			redis.call('PUBLISH', ARGV[1] .. store, string.sub(queue[1], 9) .. ' ' .. string.format('%.0f', at - now))
		end
	end
	local till = math.max(math.max(last, granted) + delay, resume)
	if strain > 0 then till = math.max(till, math.max(resume, now) + 2 * pause()) end
	for i = 1, #held, 2 do till = math.max(till, held[i + 1] + delay) end
	for i = 1, #queue, 2 do till = math.max(till, queue[i + 1] + grace) end
	if till <= now then
		redis.call('DEL', KEYS[1])
		return
	end
	local h, q = {}, {}
	for i = 1, #held, 2 do h[i], h[i + 1] = held[i], held[i + 1] - last end
	for i = 1, #queue, 2 do q[i], q[i + 1] = queue[i], queue[i + 1] - last end
	local g, r = 0, 0
	if granted > 0 then g = granted - last end
	if resume > now then r = resume - last end
	redis.call('SET', KEYS[1], cmsgpack.pack(last, g, r, strain, h, q), 'PX', math.ceil((till - now) / 1000))
end
`

// takeScript answers with: whether the turn is given, when to ask again, how long the pause is,
// and the strain.
var takeScript = redis.NewScript(preamble + `
local kind = tonumber(ARGV[6])
local page, visit, visitor, robots = 0, 1, 2, 3
local lost, till = remove(held)
local before = remove(queue)
if not before then
	before = #queue / 2 + 1
	if kind == visitor or kind == robots then before = 1 end
end
local from = last
if kind ~= visitor then from = math.max(last, granted) end
local at, wait = earliest(from), kind ~= robots and full()
if lost and last <= till - lease then -- the answer was lost, and there was no request since
	before, wait, at = 1, false, math.max(now, resume)
end
if before == 1 and not wait and at <= now then
	if kind == visit then
		granted = now
	else
		last = now
		if places > 0 then held[#held + 1], held[#held + 2] = id, now + lease end
	end
	save()
	return {1, 0, 0, strain}
end
if before > 1 then
	local ahead = queue[2 * before - 2]
	at = math.max(at, ahead + delay)
	if at <= now then at = ahead + grace end -- it is late, and may be dead
elseif wait then
	for i = 2, #held, 2 do
		if i == 2 or held[i] + delay < wait then wait = held[i] + delay end
	end
	at = math.max(at, wait)
end
table.insert(queue, 2 * before - 1, id)
table.insert(queue, 2 * before, at)
save()
return {0, string.format('%.0f', at - now), string.format('%.0f', math.max(resume - now, 0)), strain}
`)

// tellScript is what has become of a turn.
var tellScript = redis.NewScript(preamble + `
local event, asked, jitter = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
if event == 'ended' then
	remove(held)
	last = now
elseif event == 'dropped' then
	remove(held)
	remove(queue)
elseif event == 'renewed' then
	remove(held)
	if places > 0 then held[#held + 1], held[#held + 2] = id, now + lease end
elseif event == 'failed' and asked > 0 then
	resume = math.max(resume, now + math.min(asked, day))
else
	if event == 'failed' and pause() < 3600000000 then
		strain = strain + 1
	elseif event == 'answered' and strain > 0 then
		strain = strain - 1
	end
	if strain > 0 then resume = math.max(resume, now + math.floor(pause() * jitter)) end
end
save()
return 0
`)
