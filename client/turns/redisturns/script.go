package redisturns

import (
	"sync"

	"github.com/redis/go-redis/v9"
)

// The state of an origin is one string under one key: times in microseconds of the server's
// clock, packed as MessagePack. All but the first are relative to the latest start or end.
//
//	last     the latest start or end of a request
//	granted  the latest Visit, not yet used perhaps
//	resume   the end of the pause
//	strain   failures, less the good answers since
//	longest  of all delays that were kept: those of others may be shorter, and must not end the state
//	places   how many are taken
//	held     those: name and end of lease, in turn
//	queue    who waits: name and when it was told to ask, in turn
//
// A name begins with the Store that has the turn: the last part of the channel on which it
// listens. All values are in one row, and all numbers that a script is given in one argument,
// because a script spends its time on tables and calls.
//
// A time in the far future is of a server whose clock was ahead (a failover). It counts as now,
// or as far off as it can be.
const preamble = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local id = ARGV[2]
local what, delay, places, lease, asked, jitter = struct.unpack('>dddddd', ARGV[3])
local day, grace = 86400000000, 250000
local last, granted, resume, strain, longest, held, queue = 0, 0, 0, 0, delay, {}, {}

local packed = redis.pcall('GET', KEYS[1])
if type(packed) == 'string' then
	local v = {pcall(cmsgpack.unpack, packed)} -- from the second value on
	if v[1] and type(v[7]) == 'number' then
		local l = v[2]
		last, strain, longest = l, v[5], math.max(v[6], delay)
		if last > now then last = now end
		if v[3] ~= 0 then granted = math.min(l + v[3], now) end
		if v[4] ~= 0 then resume = math.min(l + v[4], now + day) end
		local first = 8 + 2 * v[7] -- of the queue
		for i = 8, first - 1, 2 do
			local till = math.min(l + v[i + 1], now + day)
			if till > now then
				held[#held + 1], held[#held + 2] = v[i], till
			elseif till > last then
				last = till -- its process died: the request may have gone on until now
			end
		end
		for i = first, #v, 2 do
			local due = math.min(l + v[i + 1], now + day)
			if due + grace > now or v[i] == id then
				queue[#queue + 1], queue[#queue + 2] = v[i], due
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
	local till = math.max(math.max(last, granted) + longest, resume)
	if strain > 0 then till = math.max(till, math.max(resume, now) + 2 * pause()) end
	for i = 1, #held, 2 do till = math.max(till, held[i + 1] + longest) end
	for i = 1, #queue, 2 do till = math.max(till, queue[i + 1] + grace) end
	if till <= now then
		redis.call('DEL', KEYS[1])
		return
	end
	local v = {last, 0, 0, strain, longest, #held / 2}
	if granted > 0 then v[2] = granted - last end
	if resume > now then v[3] = resume - last end
	for i = 1, #held, 2 do v[#v + 1], v[#v + 2] = held[i], held[i + 1] - last end
	for i = 1, #queue, 2 do v[#v + 1], v[#v + 2] = queue[i], queue[i + 1] - last end
	redis.call('SET', KEYS[1], cmsgpack.pack(unpack(v)), 'PX', math.ceil((till - now) / 1000))
end
`

// script has a script made, and hashed, at its first use: not by each program that links it.
func script(text string) func() *redis.Script {
	return sync.OnceValue(func() *redis.Script { return redis.NewScript(preamble + text) })
}

// takeScript answers with: whether the turn is given, when to ask again, how long the pause is,
// and the strain.
var takeScript = script(`
local visit, visitor, robots = what == 1, what == 2, what == 3
local has, till = remove(held)
local before = remove(queue)
if has or not before and (visitor or robots) then
	before = 1
elseif not before then
	before = #queue / 2 + 1
end
local from = last
if not visitor then from = math.max(last, granted) end
local at, wait = earliest(from), not robots and not has and full()
if has and last <= till - lease then at = math.max(now, resume) end -- there was no request since
if before == 1 and not wait and at <= now then
	if visit then
		granted = now
	else
		last = now
		if places > 0 then held[#held + 1], held[#held + 2] = id, now + lease end
	end
	save()
	return {1, 0, 0, strain}
end
if has then -- it is perhaps not the answer that was lost, but a question that is late
	held[#held + 1], held[#held + 2] = id, till
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
return {0, at - now, math.max(resume - now, 0), strain}
`)

// tellScript is what has become of a turn.
var tellScript = script(`
local ended, dropped, renewed, failed, answered = 0, 1, 2, 3, 4
if what == ended then
	remove(held)
	last = now
elseif what == dropped then
	remove(held)
	remove(queue)
elseif what == renewed then
	remove(held)
	if places > 0 then held[#held + 1], held[#held + 2] = id, now + lease end
elseif what == failed and asked > 0 then
	resume = math.max(resume, now + math.min(asked, day))
else
	if what == failed and pause() < 3600000000 then
		strain = strain + 1
	elseif what == answered and strain > 0 then
		strain = strain - 1
	end
	if strain > 0 then resume = math.max(resume, now + math.floor(pause() * jitter)) end
end
save()
return 0
`)
