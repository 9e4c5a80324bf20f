package redisturns

import (
	"sync"

	"github.com/redis/go-redis/v9"
)

// The state of an origin is one string under one key: an array in MessagePack, with times in
// microseconds of the server's clock. All but the first are relative to that.
//
//	version  of what follows; every version begins with RGT
//	last     the latest start or end of a request
//	free     when the pause and all leases have ended; no earlier than the latest Visit
//	strain   failures, less the good answers since
//	longest  of all delays that were kept: those of others may be shorter, and must not end the state
//
// These five stay in every version. What follows is of this one:
//
//	keep     how long the state is kept at least: what robots.txt asks for may not be known yet
//	granted  the latest Visit, not yet used perhaps
//	resume   the end of the pause
//	places   how many are taken
//	held     those: name and end of lease, in turn
//	queue    who waits: name and when it was told to ask, in turn
//
// A script that meets another version gives no turn before free, and then keeps the longest delay: two
// versions of a program take turns while one replaces the other. It reads their five values, and writes its
// own state only with a turn that it gives, or with news. What is no state at all counts as a request
// just now: it holds up its origin for one delay, and is then gone.
//
// A name begins with the Store that has the turn: the last part of the channel on which it
// listens. It ends with who goes first: '!' for robots.txt, '+' for a Visitor, a letter or digit for
// all others. All values are in one row, and all numbers that a script is given in one argument,
// because a script spends its time on tables and calls.
//
// A time in the far future is of a server whose clock was ahead (a failover). It counts as now,
// or as far off as it can be.
const preamble = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local id = ARGV[2]
local what, delay, places, lease, asked, keep, jitter = struct.unpack('>ddddddd', ARGV[3])
local day, grace, version = 86400000000, 250000, 'RGT1'
local last, granted, resume, strain, longest, kept, held, queue, mixed = 0, 0, 0, 0, delay, 0, {}, {}, 0

local packed = redis.pcall('GET', KEYS[1])
local function read()
	local v = cmsgpack.unpack(packed)
	assert(string.sub(v[1], 1, 3) == 'RGT')
	local l, free = v[2], math.min(v[2] + v[3], now + day)
	last, strain, longest = math.min(l, now), v[4] + 0, math.max(math.min(v[5], day), delay)
	if v[1] ~= version then
		mixed, delay, resume = 1, longest, free
		if free <= now then last = math.max(last, free) end -- a lease of a process that died, or a Visit
		return
	end
	kept = math.min(l + v[6], now + 2 * day)
	if v[7] ~= 0 then granted = math.min(l + v[7], now) end
	if v[8] ~= 0 then resume = math.min(l + v[8], now + day) end
	local first = 10 + 2 * v[9] -- of the queue
	for i = 10, first - 1, 2 do
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
			queue[#queue + 1], queue[#queue + 2] = v[i] .. '', due
		end
	end
end
if packed and not pcall(read) then
	last, granted, resume, strain, longest, kept, held, queue = now, 0, 0, 0, delay, 0, {}, {}
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
-- sooner than it knows. That a user may not publish loses no state.
local function save()
	if #queue > 0 and not full() then
		local at = earliest(math.max(last, granted))
		if queue[2] > at + 1000 then
			queue[2] = at
			local store = string.sub(queue[1], 1, 8)
			redis.pcall('PUBLISH', ARGV[1] .. store, string.sub(queue[1], 9) .. ' ' .. string.format('%.0f', at - now))
		end
	end
	local free = math.max(resume, granted)
	if keep > 0 then kept = math.max(kept, now + lease + keep) end
	for i = 1, #held, 2 do free = math.max(free, held[i + 1]) end
	local till = math.max(math.max(last, granted) + longest, resume, kept)
	if strain > 0 then till = math.max(till, math.max(resume, now) + 2 * pause()) end
	if #held > 0 then till = math.max(till, free + longest) end
	for i = 1, #queue, 2 do till = math.max(till, queue[i + 1] + grace) end
	if till <= now then
		redis.call('DEL', KEYS[1])
		return
	end
	local v = {version, last, math.max(free, last) - last, strain, longest, 0, 0, 0, #held / 2}
	if kept > now then v[6] = kept - last end
	if granted > 0 then v[7] = granted - last end
	if resume > now then v[8] = resume - last end
	for i = 1, #held, 2 do v[#v + 1], v[#v + 2] = held[i], held[i + 1] - last end
	for i = 1, #queue, 2 do v[#v + 1], v[#v + 2] = queue[i], queue[i + 1] - last end
	redis.call('SET', KEYS[1], cmsgpack.pack(v), 'PX', math.ceil((till - now) / 1000))
end
`

// script has a script made, and hashed, at its first use: not by each program that links it.
func script(text string) func() *redis.Script {
	return sync.OnceValue(func() *redis.Script { return redis.NewScript(preamble + text) })
}

var takeScript, tellScript = script(takeText), script(tellText)

// takeText answers with: whether the turn is given, when to ask again, how long the pause is,
// the strain, how soon the turn can come at best, and whether another version has been here.
const takeText = `
local visit, visitor, robots = what == 1, what == 2, what == 3
if robots then delay = longest end -- who reads robots.txt may not know yet what it asks for
local has, till = remove(held)
local before = remove(queue)
if has then
	before = 1
elseif not before then
	before = #queue / 2 + 1
	if visitor or robots then before = 1 end
	while before <= #queue / 2 and string.byte(queue[2 * before - 1], -1) <= string.byte(id, -1) do before = before + 1 end
end
local from = last
if not visitor then from = math.max(last, granted) end
local at, wait = earliest(from), not robots and full()
if has and last <= till - lease then at, wait = math.max(now, resume), false end -- there was no request since
if before == 1 and not wait and at <= now then
	if visit then
		granted = now
	else
		last = now
		if places > 0 then held[#held + 1], held[#held + 2] = id, now + lease end
	end
	save()
	return {1, 0, 0, strain, 0, mixed}
end
if mixed == 1 then
	return {0, at - now, math.max(resume - now, 0), strain, at - now, mixed}
end
local least = at
if wait then least = math.max(at, now + delay) end
if has then -- it is perhaps not the answer that was lost, but a question that is late
	held[#held + 1], held[#held + 2] = id, till
end
if before > 1 then
	local ahead = queue[2 * before - 2]
	at = math.max(least, ahead + delay)
	if at <= now then at = ahead + grace end -- it is late, and may be dead
elseif wait then
	wait = held[2] + delay
	for i = 4, #held, 2 do wait = math.min(wait, held[i] + delay) end
	at = math.max(at, wait)
end
table.insert(queue, 2 * before - 1, id)
table.insert(queue, 2 * before, at)
save()
return {0, at - now, math.max(resume - now, 0), strain, least - now, mixed}
`

// tellText is what has become of a turn.
const tellText = `
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
`
