"""The baseline of SP-4: Channels with the same layer and none of our checks. Whoever asks for a group is told all of it."""

import json
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer

from config import startup

startup.prepare()
startup.settle()


class Bare(AsyncWebsocketConsumer):  # type: ignore[misc]  # the library has no types
    """One socket."""

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """A subscription, or a ping."""
        frame = json.loads(text_data or "{}")
        if frame["type"] == "subscribe":
            await self.channel_layer.group_add(f"agent.conv.{frame['conversation']}", self.channel_name)
        else:
            await self.send('{"type": "pong"}')

    async def chat_event(self, event: dict[str, Any]) -> None:
        """From the layer."""
        await self.send(json.dumps(event["frame"]))


application = Bare.as_asgi()
