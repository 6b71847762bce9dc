"""What every page may show of the approvals: whether the person decides them, and how many wait for them."""

import json
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Count, IntegerField, TextField, Value
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from apps.api import approval_queue, deciding, people, switches
from apps.api.models import Approval
from apps.api.people import Scope, Session


@dataclass(frozen=True, kw_only=True)
class Badge:
    """`is_shown`: the person may decide approvals."""

    is_shown: bool = False
    waiting: int = 0


def approvals(request: HttpRequest) -> dict[str, Any]:
    """`approvals_badge`. Nothing is asked for until a template does; a page that knows better says so."""
    return {"approvals_badge": SimpleLazyObject(lambda: badge(request))}


def badge(request: HttpRequest) -> Badge:
    """With one query; a session that acts as one role needs a few more."""
    person = getattr(request, "user", None)
    if person is None or not person.is_authenticated:
        return Badge()
    known = people.current()
    sql = known.owner_sql(connection.vendor, _own_pk())
    if sql is None or known.acts_as_role(request):
        session = approval_queue.looker(known.reference(request))
        return of_scope(session.scope) if isinstance(session, Session) else Badge()
    return _in_one_query(person, sql)


def of_scope(scope: Scope) -> Badge:
    """Of a page that knows the scope."""
    if not scope.can(deciding.PERMISSION):
        return Badge()
    return Badge(is_shown=True, waiting=approval_queue.count_waiting(scope, timezone.now()))


def _in_one_query(person: Any, sql: str) -> Badge:
    """The person's facts, and what waits by tool. The gates of the account were passed before a page is shown."""
    facts = RawSQL(f"CAST({sql} AS text)", (), output_field=TextField())  # noqa: S611 - nothing of a caller's
    me = get_user_model()._default_manager.filter(pk=person.pk).order_by()
    one = me.annotate(of=Value("", TextField()), many=Value(0, IntegerField()), facts=facts)
    rows = Approval.objects.filter(approval_queue.waiting_for(str(person.pk), timezone.now())).order_by()
    waiting = rows.values("tool").annotate(many=Count("pk"), facts=Value(None, TextField()))
    found = one.values_list("of", "many", "facts").union(waiting.values_list("tool", "many", "facts"), all=True)
    scope, counts = None, {}
    for tool, many, text in found:
        if text is None:
            counts[tool] = many
        else:
            scope = people.current().owner_scope(person.pk, json.loads(text), switches.parse("{}"))
    if scope is None or not scope.can(deciding.PERMISSION):
        return Badge()
    held = {tool.name for tool in approval_queue.tools(scope)}
    return Badge(is_shown=True, waiting=sum(many for tool, many in counts.items() if tool in held))


def _own_pk() -> str:
    user: Any = get_user_model()._meta
    quote = connection.ops.quote_name
    return f"{quote(user.db_table)}.{quote(user.pk.column)}"
