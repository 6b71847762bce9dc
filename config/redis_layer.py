"""The channel layer of several processes: Channels' publish and subscribe over Redis, which also says that something may be lost.

Redis keeps nothing for who is not there. When the connection comes back after a break, every consumer of this process gets
`layer.interrupted`: what was sent meanwhile never comes, and whoever listens catches up by itself.
"""

import asyncio
from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer, RedisSingleShardConnection
from channels_redis.utils import decode_hosts
from redis.asyncio.client import PubSub

INTERRUPTED = {"type": "layer.interrupted"}


class _Subscriptions(PubSub):
    """Redis calls `on_connect` when a connection that was there before is made again."""

    layer: Any

    async def on_connect(self, connection: Any) -> None:
        """Subscribe again, then say so."""
        await super().on_connect(connection)
        told = self.layer.channel_layer.serialize(INTERRUPTED)
        for queue in self.layer.channels.values():
            queue.put_nowait(told)


class _Shard(RedisSingleShardConnection):  # type: ignore[misc]  # the library has no types
    def _ensure_redis(self) -> None:
        is_new = self._redis is None
        super()._ensure_redis()
        if is_new:
            self._pubsub = _Subscriptions(self._redis.connection_pool)
            self._pubsub.layer = self.channel_layer


class RedisLayer(RedisPubSubChannelLayer):  # type: ignore[misc]  # the library has no types
    """For `CHANNEL_LAYERS`, with the library's options."""

    def _get_layer(self) -> Any:
        is_new = asyncio.get_running_loop() not in self._layers
        layer = super()._get_layer()
        if is_new:
            layer._shards = [_Shard(host, layer) for host in decode_hosts(self._kwargs.get("hosts"))]
        return layer
