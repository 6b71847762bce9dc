"""REST (RE-1): the listing and the call of a tool. Parse, one call of the executor, send its bytes."""

from functools import partial
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.views import APIView

from apps.api import doorway, executor
from apps.api.call import Audience
from apps.api.problems import Problem
from apps.api.rest.parser import StrictJSONParser


class GateView(APIView):
    """A lean view: everything that DRF could decide is decided by the gate."""

    authentication_classes = []
    permission_classes = []
    throttle_classes = []
    parser_classes = [StrictJSONParser]

    audience: Audience = "admin"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Nothing to negotiate, to authenticate or to throttle: DRF would look at each of them."""

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """The gate's answer is whole: no `Vary`, since nothing varies."""
        return response

    def http_method_not_allowed(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:  # type: ignore[override]
        allowed = {"Allow": ", ".join(self.allowed_methods)}
        return doorway.problem_response(
            Problem("method_not_allowed", "This path has no such method.", headers=allowed), plain(request)
        )


class ToolsView(GateView):
    """`GET …/tools`."""

    http_method_names = ["get", "head"]

    def get(self, request: Request) -> HttpResponse:
        return executor.list(plain(request), self.audience)


class ToolView(GateView):
    """`POST …/tools/<name>`."""

    http_method_names = ["post"]

    def post(self, request: Request, name: str) -> HttpResponse:
        return executor.call(plain(request), self.audience, name, partial(StrictJSONParser().parse, request))


class ApprovalView(GateView):
    """`GET` and `DELETE …/approvals/<uuid>`: the faces of `system.get_approval` and `system.cancel_approval`."""

    http_method_names = ["get", "head", "delete"]

    def get(self, request: Request, uuid: str) -> HttpResponse:
        return self._call(request, "system.get_approval", uuid)

    def delete(self, request: Request, uuid: str) -> HttpResponse:
        return self._call(request, "system.cancel_approval", uuid)

    def _call(self, request: Request, tool: str, uuid: str) -> HttpResponse:
        return executor.call(plain(request), self.audience, tool, lambda: {"approval_id": _known(uuid)})


def _known(text: str) -> str:
    """What is no uuid is nobody's approval: the path does not exist for it either way."""
    try:
        return str(UUID(text))
    except ValueError:
        return str(UUID(int=0))


def plain(request: Request) -> HttpRequest:
    """Django's request inside DRF's."""
    inner: HttpRequest = request._request
    return inner
