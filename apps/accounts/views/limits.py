"""What the pages of passwords and gates share."""

from typing import Any

from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import View


class Private(View):
    """Kept by no cache."""

    @method_decorator(never_cache)
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return super().dispatch(request, *args, **kwargs)


class Waiting:
    """Mixed into a form view: a form that asks to wait is answered with 429, and the answer says how long."""

    def form_invalid(self, form: BaseForm) -> HttpResponse:
        answer: HttpResponse = super().form_invalid(form)  # type: ignore[misc]  # of the form view beside
        wait = getattr(form, "wait", None)
        if wait is not None:
            answer.status_code = 429
            answer.headers["Retry-After"] = str(wait)
        return answer


class Limited(Waiting):
    """Mixed into the view of a LimitedForm."""

    request: HttpRequest

    def get_form_kwargs(self) -> dict[str, Any]:
        kwargs: dict[str, Any] = super().get_form_kwargs()  # type: ignore[misc]  # of the form view beside
        return kwargs | {"visitor": self.request}
