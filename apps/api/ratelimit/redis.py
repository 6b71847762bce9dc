"""The limiter's store in Redis: one script call decides and charges (RL-4)."""

import hashlib
from string import Template
from typing import Any

import redis

from apps.api.ratelimit.bucket import Charges, Reading

# Connecting and every answer; a Redis that is slower counts as down.
TIMEOUT_SECONDS = 0.05

# A bucket is one string of doubles: the sum, then slot and units of each live slot, the oldest first. Each slot enters and
# leaves it once, at its ends, so a charge costs the same however full the window is, and a refusal writes nothing. The
# expiry is set with the value: no cut connection leaves units that never come back. The clock is Redis' own.
_SCRIPT = Template("""
local now = tonumber($clock)
local fits = true
local buckets, answer = {}, {}

for i, key in ipairs(KEYS) do
    local budget, units, seconds = tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
    local state = redis.call('GET', key) or ''
    local sum = state ~= '' and struct.unpack('>d', state) or 0
    local head, tail = 9, #state

    while head < tail do
        local slot, gone = struct.unpack('>dd', state, head)
        if slot >= now - seconds then break end
        sum = sum - gone
        head = head + 16
    end
    while head < tail do
        local slot, gone = struct.unpack('>dd', state, tail - 15)
        if slot <= now + seconds then break end
        sum = sum - gone
        tail = tail - 16
    end

    local over = units > 0 and sum + units - budget or 0
    local at, wait = head, 0
    while over > 0 and at < tail do
        local slot, freed = struct.unpack('>dd', state, at)
        over = over - freed
        wait = slot + seconds + 1 - now
        at = at + 16
    end

    answer[3 * i - 2] = sum
    answer[3 * i - 1] = head < tail and struct.unpack('>d', state, head) + seconds + 1 - now or 0
    answer[3 * i] = wait

    -- The units go to the present slot; after a clock was set back, to the newest, which keeps the order.
    local newest, taken = now, 0
    if head < tail then
        local slot, units_of_slot = struct.unpack('>dd', state, tail - 15)
        if slot >= now then
            newest, taken = slot, units_of_slot
            tail = tail - 16
        end
    end
    buckets[i] = {sum, state:sub(head, tail), newest, taken}
    fits = fits and wait == 0
end

if fits and ARGV[1] == 'take' then
    for i, key in ipairs(KEYS) do
        local units, seconds = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
        if units > 0 then
            local sum, before, newest, taken = unpack(buckets[i])
            local state = struct.pack('>d', sum + units) .. before .. struct.pack('>dd', newest, taken + units)
            redis.call('SET', key, state, 'EX', newest - now + seconds + 1)
            if sum == 0 then answer[3 * i - 1] = seconds + 1 end
            answer[3 * i - 2] = sum + units
        end
    end
end
return answer
""")


class RedisStore:
    """Exact over all threads, processes and machines of one Redis. `clock` is Lua, for whole seconds."""

    errors = (redis.RedisError, OSError)

    def __init__(self, url: str, clock: str = "redis.call('TIME')[1]") -> None:
        self._script = _SCRIPT.substitute(clock=clock)
        self._sha = hashlib.sha1(self._script.encode(), usedforsecurity=False).hexdigest()
        pool = redis.ConnectionPool.from_url(
            url,
            socket_connect_timeout=TIMEOUT_SECONDS,
            socket_timeout=TIMEOUT_SECONDS,
            # One for each thread: the default of 100 is an error for the 101st.
            max_connections=2**16,
        )
        self._pool = pool

    def take(self, charges: Charges) -> tuple[Reading, ...]:
        return self._run("take", charges)

    def look(self, charges: Charges) -> tuple[Reading, ...]:
        return self._run("look", charges)

    def _run(self, verb: str, charges: Charges) -> tuple[Reading, ...]:
        keys = [f"ratelimit:{bucket.name}" for bucket, _ in charges]
        numbers = [number for bucket, units in charges for number in (bucket.budget, units, bucket.seconds)]
        try:
            answer = self._ask("EVALSHA", self._sha, len(keys), *keys, verb, *numbers)
        except redis.exceptions.NoScriptError:
            answer = self._ask("EVAL", self._script, len(keys), *keys, verb, *numbers)
        return tuple(Reading(*answer[at : at + 3]) for at in range(0, len(answer), 3))

    def _ask(self, *command: str | int) -> Any:
        """One command on a connection of the pool, without the client around it: that repeats commands, and costs as much as Redis.

        A repeated script could charge twice. A connection that fails closes itself, so no later command reads its answer.
        """
        connection: Any = self._pool.get_connection()
        try:
            connection.send_command(*command)
            return connection.read_response()
        finally:
            self._pool.release(connection)
