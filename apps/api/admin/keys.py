"""API keys in the admin site: made (their text is shown once), changed, revoked, never deleted."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote
from uuid import UUID, uuid4

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import formats, timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from apps.activity.admin import BoundedPaginator
from apps.api import acting, doorway, key_text, keys, people
from apps.api.admin import key_forms, shown_once
from apps.api.admin.rotation import RotatingAdmin
from apps.api.models import ApiKey
from apps.api.models.key import KeyState

# The page that asks before keys are revoked names this many of them.
NAMED = 20


class StateFilter(admin.SimpleListFilter):
    """By the column of the same name."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return KeyState.choices

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[ApiKey]:
        state = self.value()
        if state not in KeyState.values:
            return queryset  # type: ignore[no-any-return]  # the stubs know no query set of ours
        return queryset.in_state(KeyState(state), timezone.now())  # type: ignore[no-any-return]  # as above


@admin.register(ApiKey)
class ApiKeyAdmin(RotatingAdmin):
    """What authenticates is read-only, and so is a key that was revoked."""

    form = key_forms.KeyForm
    list_display = ("name", "state", "public_id", "owned_by", "scope_names", "approval", "last_used_at", "expires_at")
    list_filter = (StateFilter, "requires_approval", "expires_at")
    list_select_related = ("owner",)
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = BoundedPaginator
    ordering = ("-created_at", "pk")
    search_help_text = _("A name, an id, the owner's address, or a whole key: it is found by its id and kept nowhere.")
    actions = ("rotate_key", "revoke_keys")
    readonly_fields = (
        "public_id", "owner", "owned_by", "state", "scope_list", "network_list", "family", "created_at", "created_by",
        "last_used_at", "exposed_at", "revoked_at", "revoked_by",
    )  # fmt: skip

    class Media:
        css = {"all": ("css/api-admin.css",)}

    # Rights

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Not in a session that acts as one role: a key is never narrowed, and would be worth more than the session."""
        return super().has_add_permission(request) and not people.current().acts_as_role(request)

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Not for a revoked key: it is history."""
        return super().has_change_permission(request, obj) and (obj is None or obj.revoked_at is None)

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Never: entries name the key."""
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Who may change keys may end them."""
        return super().has_change_permission(request)

    # The list

    def get_urls(self) -> list[URLPattern]:
        own = [
            path("find/", self.admin_site.admin_view(self.find_view), name="api_apikey_find"),
            path("<uuid:pk>/revoke/", self.admin_site.admin_view(self.revoke_view), name="api_apikey_revoke"),
        ]
        return own + super().get_urls()

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return ("name", "public_id", f"owner__{get_user_model().USERNAME_FIELD}")

    def find_view(self, request: HttpRequest) -> HttpResponse:
        """The search box posts here, so that a pasted key never stands in an address; what follows is the list with its id."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        wanted = request.POST.copy()
        wanted.pop("csrfmiddlewaretoken", None)
        return _listed(wanted)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # Somebody wrote a whole key into the address all the same: it counts as exposed, as in every other URL (KY-5).
        seen = key_text.PATTERN.findall(unquote(request.META.get("QUERY_STRING", "")))
        if not seen:
            return super().changelist_view(request, extra_context)
        ip = acting.of(request)["ip"] or ""
        for text in seen:
            keys.mark_exposed(text, request_id=doorway.request_id(request), ip=ip)
        messages.warning(request, gettext("A whole key stood in the address of this page: it counts as exposed now."))
        return _listed(request.GET.copy())

    @admin.display(description=_("owner"), ordering="owner")
    def owned_by(self, key: ApiKey) -> SafeString:
        """The owner, leading to all of their keys."""
        page = reverse("admin:api_apikey_changelist")
        return format_html('<a href="{}?owner={}">{}</a>', page, key.owner_id, key.owner)

    @admin.display(description=_("scopes"))
    def scope_names(self, key: ApiKey) -> SafeString:
        return _lines(key.scopes)

    @admin.display(description=_("approval"), ordering="requires_approval")
    def approval(self, key: ApiKey) -> str:
        return gettext("required") if key.requires_approval else ""

    @admin.display(description=_("state"))
    def state(self, key: ApiKey) -> SafeString:
        state = key.state_at(timezone.now())
        shown = format_html('<span class="th-state th-{}">{}</span>', state.value, state.label)
        if state != KeyState.GRACE or key.expires_at is None:
            return shown
        until = formats.date_format(timezone.localtime(key.expires_at), "SHORT_DATETIME_FORMAT")
        return format_html('{} <span class="th-quiet">{}</span>', shown, gettext("until %(when)s") % {"when": until})

    @admin.action(description=_("Revoke these keys"), permissions=["revoke"])
    def revoke_keys(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse | None:
        """Asks first, then revokes."""
        if request.POST.get("post"):
            self._revoke(request, queryset)
            return None
        return self._ask(request, queryset, chosen=request.POST)

    # One key

    def get_fieldsets(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        if obj is None:
            given = ["owner", "name", "scopes", "networks", "budget", "expires_at", "once"]
            return _sheets(given, ["requires_approval", "approvers_needed"], [])
        facts = ["public_id", "owned_by", "state", "family", "created_at", "created_by", "last_used_at"]
        facts += [name for name in ("exposed_at", "revoked_at", "revoked_by") if getattr(obj, name) is not None]
        if self.has_change_permission(request, obj):
            given = ["name", "scopes", "networks", "budget", "expires_at", "seen"]
        else:
            given = ["name", "scope_list", "network_list", "budget", "expires_at"]
        return _sheets(given, ["requires_approval", "approvers_needed"], facts)

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        return () if obj is None else self.readonly_fields

    def get_form(self, request: HttpRequest, obj: ApiKey | None = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002 - Django's
        if change:
            return super().get_form(request, obj, change=change, **kwargs)
        form: Any = super().get_form(request, obj, change=change, **{**kwargs, "form": key_forms.NewKeyForm})
        form.by = request.user  # the class is made for this request
        return form

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """One's own key, where the link says nothing else."""
        given = super().get_changeform_initial_data(request)
        return {"owner": request.user.get_username(), **given, "once": uuid4()}

    @admin.display(description=_("scopes"))
    def scope_list(self, key: ApiKey) -> SafeString:
        return _lines([key_forms.describe(scope) for scope in key.scopes] or [gettext("none")])

    @admin.display(description=_("allowed networks"))
    def network_list(self, key: ApiKey) -> SafeString:
        return _lines(key.networks or [gettext("everywhere")])

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> Any:
        try:
            return super().add_view(request, form_url, extra_context)
        except IntegrityError:  # the same form twice at once: the other one made the key
            messages.error(request, gettext("This form was sent twice. It made one key."))
            return HttpResponseRedirect(reverse("admin:api_apikey_changelist"))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> Any:
        context = {"can_revoke": self.has_revoke_permission(request), **(extra_context or {})}
        try:
            return super().change_view(request, object_id, form_url, context)
        except keys.Stale:
            text = gettext("Nothing was saved: somebody else changed this key in the meantime. This is what it is now.")
            messages.error(request, text)
            return HttpResponseRedirect(request.path)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's
        by = acting.of(request)
        if change:
            keys.change(obj, form.grant(), seen=form.cleaned_data["seen"], **by)
            return
        once: UUID = form.cleaned_data["once"]
        made, text = keys.create(form.grant(), owner=obj.owner, created_by=request.user, uuid=once, **by)
        obj.pk, obj.public_id = made.pk, made.public_id
        request.key_text = text  # type: ignore[attr-defined]  # Django's way of extending the request

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        # A new key's text is what follows the form: there is one way to go on.
        return super().render_change_form(
            request, {**context, "show_save_and_add_another": False, "show_save_and_continue": False}, *args, **kwargs
        )

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        """The text of the new key; a reload makes no second one."""
        text: str = request.key_text  # type: ignore[attr-defined]  # set in save_model
        return shown_once.page(self, request, obj, text, title=gettext("Key created"))

    def revoke_view(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """The button of one key's page."""
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        queryset = self.get_queryset(request).filter(pk=pk)
        if not queryset:
            return HttpResponseRedirect(reverse("admin:api_apikey_changelist"))
        if request.method != "POST":
            return self._ask(request, queryset, chosen=QueryDict())
        self._revoke(request, queryset)
        return HttpResponseRedirect(reverse("admin:api_apikey_change", args=[pk]))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The activity log knows more than the admin site's own history: keys, commands and exposures too."""
        return HttpResponseRedirect(f"{reverse('admin:activity_entry_changelist')}?q={object_id}")

    def _ask(self, request: HttpRequest, queryset: QuerySet[ApiKey], *, chosen: QueryDict) -> HttpResponse:
        named = list(queryset[: NAMED + 1])
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Revoke for good?"),
            "opts": self.opts,
            "media": self.media,
            "named": named[:NAMED],
            "more": len(named) > NAMED,
            "everything": chosen.get("select_across") == "1",
            "chosen": chosen.getlist("_selected_action"),
            "back": reverse("admin:api_apikey_changelist"),
        }
        return TemplateResponse(request, "admin/api/apikey/revoke.html", context)

    def _revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        by = acting.of(request)
        outcomes = [keys.revoke(key, by=request.user, **by) for key in queryset.order_by("pk")]
        revoked, before = outcomes.count(True), outcomes.count(False)
        if revoked:
            text = ngettext("%(count)d key revoked.", "%(count)d keys revoked.", revoked) % {"count": revoked}
            messages.success(request, text)
        if before:
            text = ngettext(
                "%(count)d key had been revoked already.", "%(count)d keys had been revoked already.", before
            ) % {"count": before}
            messages.warning(request, text)


def _sheets(given: list[str], approval: list[str], facts: list[str]) -> list[tuple[Any, dict[str, Any]]]:
    sheets = [(None, {"fields": given}), (_("Approval"), {"fields": approval})]
    return [*sheets, (_("Facts"), {"fields": facts})] if facts else sheets


def _listed(query: QueryDict) -> HttpResponse:
    """The list for these parameters, each whole key in them replaced by its id."""
    clean = QueryDict(mutable=True)
    for name, values in query.lists():
        clean.setlist(
            name, [key_text.PATTERN.sub(lambda found: key_text.public_id(found[0]), value) for value in values]
        )
    return HttpResponseRedirect(f"{reverse('admin:api_apikey_changelist')}?{clean.urlencode()}")


def _lines(texts: Iterable[str]) -> SafeString:
    return format_html_join("", "<div>{}</div>", ((text,) for text in texts))
