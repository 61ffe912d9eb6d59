-- SPDX-License-Identifier: MIT
-- mix.lua N - tables, strings, closures, metatables, coroutines and a queens puzzle, N rounds.
local n = tonumber(arg[1]) or error("usage: mix.lua N")

local Point = {}
Point.__index = Point
Point.__add = function(a, b) return setmetatable({ x = a.x + b.x, y = a.y + b.y }, Point) end
function Point.new(x, y) return setmetatable({ x = x, y = y }, Point) end
function Point:norm() return self.x * self.x + self.y * self.y end

local function queens(size)
	local found, columns, up, down = 0, {}, {}, {}
	local function place(row)
		if row > size then
			found = found + 1
			return
		end
		for c = 1, size do
			if not (columns[c] or up[row + c] or down[row - c]) then
				columns[c], up[row + c], down[row - c] = true, true, true
				place(row + 1)
				columns[c], up[row + c], down[row - c] = nil, nil, nil
			end
		end
	end
	place(1)
	return found
end

local function words(text)
	return coroutine.wrap(function()
		for w in text:gmatch("%a+") do coroutine.yield(w) end
	end)
end

local text = ("the quick brown fox jumps over the lazy dog and runs away "):rep(20)
local total, p, count, parts = 0, Point.new(0, 0), {}, {}
for i = 1, n do
	total = total + queens(6)
	for w in words(text) do
		local key = w:upper():sub(1, 1 + i % 4)
		count[key] = (count[key] or 0) + 1
	end
	for k = 1, 300 do p = p + Point.new(k % 7, i % 5) end
	parts[#parts + 1] = string.format("%d:%s:%x", i, text:sub(i % 100 + 1, i % 100 + 6), p:norm())
	if #parts > 40 then
		table.sort(parts)
		total = total + #table.concat(parts, ","):gsub("%d", "")
		parts = {}
	end
end

local keys = {}
for k in pairs(count) do keys[#keys + 1] = k end
table.sort(keys)
for _, k in ipairs(keys) do print(k, count[k]) end
print(total, p:norm())
