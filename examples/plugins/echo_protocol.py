"""A wire protocol of its own: a model that repeats what it is told. Use it with ``"protocol": "echo"``."""

from crystal import hookimpl
from crystal.types.items import UserItem
from crystal.types.model import FinishDelta, FinishReason, TextDelta

name = "echo"


class EchoClient:
    async def stream(self, request, load_image):
        said = [item.text for item in request.items if isinstance(item, UserItem)]
        yield TextDelta(text=said[-1])
        yield FinishDelta(reason=FinishReason.STOP)

    async def aclose(self):
        pass


class EchoFactory:
    protocols = ("echo",)

    def create(self, request):
        return EchoClient()


@hookimpl
def contribute_protocols():
    return [EchoFactory()]
