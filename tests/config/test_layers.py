"""The channel layer of one process: wakes the loop from any thread, merges what is equal, drops nothing, keeps nothing."""

import asyncio
import threading
from typing import Any

from config.layers import OneProcessLayer


def sent_from_a_thread(layer: OneProcessLayer, *messages: dict[str, Any]) -> None:
    def work() -> None:
        for message in messages:
            asyncio.run(layer.group_send("news", message))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_a_waiting_loop_is_woken_from_another_thread() -> None:
    async def run() -> Any:
        layer = OneProcessLayer()
        channel = await layer.new_channel()
        await layer.group_add("news", channel)
        waiting = asyncio.create_task(layer.receive(channel))
        await asyncio.sleep(0)
        await asyncio.to_thread(sent_from_a_thread, layer, {"type": "a"})
        return await asyncio.wait_for(waiting, 10)

    assert asyncio.run(run()) == {"type": "a"}


def test_equal_messages_that_wait_are_one_and_none_of_the_others_is_dropped() -> None:
    async def run() -> list[Any]:
        layer = OneProcessLayer()
        channel = await layer.new_channel()
        await layer.group_add("news", channel)
        for number in (*range(500), *range(500)):
            await layer.group_send("news", {"type": "a", "number": number})
        return [(await layer.receive(channel))["number"] for _ in range(500)]

    assert asyncio.run(run()) == list(range(500))


def test_a_group_that_was_left_and_a_channel_whose_receiver_ended_get_nothing_and_are_forgotten() -> None:
    layer = OneProcessLayer()

    async def run() -> None:
        first, second = await layer.new_channel(), await layer.new_channel()
        await layer.group_add("news", first)
        await layer.group_add("news", second)
        await layer.group_discard("news", first)
        await layer.group_send("news", {"type": "a"})
        assert await layer.receive(second) == {"type": "a"}
        for channel in (first, second):
            receiver = asyncio.create_task(layer.receive(channel))
            await asyncio.sleep(0)
            receiver.cancel()
            await asyncio.wait([receiver])

    asyncio.run(run())
    assert (layer._boxes, layer._groups) == ({}, {})


def test_a_server_that_has_stopped_is_no_error_for_who_sends() -> None:
    layer = OneProcessLayer()

    async def listen() -> None:
        await layer.group_add("news", await layer.new_channel())

    asyncio.run(listen())
    sent_from_a_thread(layer, {"type": "a"})
