"""A value on every worker of a Dask cluster, those that come later included.

Data that is scattered does not stay where it was put: Dask drops copies that no call waits for, and
loses them with the last worker that has one. What a plugin carries is sent to each worker once, and
kept.
"""

from __future__ import annotations

from typing import Any

from distributed import Client, WorkerPlugin, get_worker


class Carrier(WorkerPlugin):
    """Brings a value to each worker, under the name that it is registered by."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Parcel:
    """Stands for a value in the arguments of a call.

    Parameters
    ----------
    client : Client
    value : any
        Sent to all workers now.
    """

    def __init__(self, client: Client, value: Any) -> None:
        self.name = f"napari-xcebra-{id(value)}-{client.id}"
        client.register_plugin(Carrier(value), name=self.name)

    def opened(self) -> Any:
        """The value, on a worker."""
        carrier: Any = get_worker().plugins[self.name]
        return carrier.value

    def withdrawn(self, client: Client) -> None:
        """Let the workers have their memory back."""
        client.unregister_worker_plugin(self.name)


def opened(value: Any) -> Any:
    """What a parcel stands for; any other value as it is."""
    return value.opened() if isinstance(value, Parcel) else value
