"""The channel layer of several processes: after a break of its connection every consumer hears that something may be lost."""

import asyncio
from typing import Any

from config.redis_layer import RedisLayer
from tests.services import Redis


def layer_of(server: Redis) -> RedisLayer:
    return RedisLayer(hosts=[server.url], prefix="tests")


def test_a_break_is_told_to_every_channel_and_what_is_sent_afterwards_arrives(redis_server: Redis) -> None:
    async def run() -> list[Any]:
        here, there = layer_of(redis_server), layer_of(redis_server)
        channels = [await here.new_channel(), await here.new_channel()]
        for channel in channels:
            await here.group_add("news", channel)
        await there.group_send("news", {"type": "before"})
        told = [await here.receive(channel) for channel in channels]
        redis_server.kill()
        redis_server.start()
        told += [await asyncio.wait_for(here.receive(channel), 20) for channel in channels]
        # A connection that was there before fails once: who sends tries again.
        after = layer_of(redis_server)
        await after.group_send("news", {"type": "after"})
        told += [await asyncio.wait_for(here.receive(channel), 20) for channel in channels]
        for layer in (here, there, after):
            await layer.flush()
        return [message["type"] for message in told]

    assert asyncio.run(run()) == ["before", "before", "layer.interrupted", "layer.interrupted", "after", "after"]


def test_a_redis_that_pauses_loses_nothing_and_is_no_break(redis_server: Redis) -> None:
    async def run() -> list[Any]:
        here, there = layer_of(redis_server), layer_of(redis_server)
        channel = await here.new_channel()
        await here.group_add("news", channel)
        redis_server.pause()
        sent = asyncio.create_task(there.group_send("news", {"type": "during"}))
        await asyncio.sleep(0)
        redis_server.resume()
        await sent
        await there.group_send("news", {"type": "after"})
        told = [await asyncio.wait_for(here.receive(channel), 20) for _ in range(2)]
        await here.flush()
        await there.flush()
        return [message["type"] for message in told]

    assert asyncio.run(run()) == ["during", "after"]
