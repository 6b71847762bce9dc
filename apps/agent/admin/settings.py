"""Settings → Agent (TU-9): one page for everybody, and rows for people of whom something else is set."""

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.activity import actions
from apps.activity import log as activity
from apps.agent import options
from apps.agent.admin import settings_words as words
from apps.agent.admin.logged import Gone, LoggedAdmin
from apps.agent.models import AgentSetting, ModelEndpoint
from apps.api import acting
from apps.api.admin.setting_sheet import SettingSheet
from apps.api.admin.settings_page import SettingsPage
from apps.api.settings_store import Book

BOOK = Book(rules=options.RULES, action=actions.AGENT_SETTINGS_CHANGED, module="agent")
_LIMITS = ("daily_tokens", "daily_cost", "turns_at_once")
_FIELDS = ("is_enabled", *_LIMITS)


class AgentSheet(SettingSheet):
    """The settings of the assistant."""

    book = BOOK
    vocabulary = words.VOCABULARY

    def meanwhile(self, name: str) -> str:
        if name == "agent_prompt_addition":
            return gettext("Meanwhile the assistant is off: your own rules may stand in it.")
        return super().meanwhile(name)


class PersonForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """Empty limits are those of everybody."""

    address = forms.CharField(label=_("Person"), max_length=254, help_text=_("Their e-mail address."))

    class Meta:
        model = AgentSetting
        fields = _FIELDS
        help_texts = dict.fromkeys(_LIMITS, _("Empty: as for everybody."))

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if not self.instance._state.adding:
            del self.fields["address"]

    def clean_address(self) -> str:
        address = str(self.cleaned_data["address"]).strip()
        people: Any = get_user_model()._default_manager
        try:
            self.instance.user = people.get_by_natural_key(address)
        except get_user_model().DoesNotExist:
            raise forms.ValidationError(gettext("Nobody has this address.")) from None
        if AgentSetting.objects.filter(pk=self.instance.user_id).exists():
            raise forms.ValidationError(gettext("Something is set for this person already."))
        return address

    def clean_daily_cost(self) -> Any:
        cost = self.cleaned_data["daily_cost"]
        if cost is not None and cost < 0:
            raise forms.ValidationError(gettext("An amount from 0."))
        return cost


@admin.register(AgentSetting)
class AgentSettingAdmin(SettingsPage, LoggedAdmin):
    """Who may change these may change the settings of everybody, and the other way round."""

    sheet = AgentSheet
    templates = "admin/agent/agentsetting"
    form = PersonForm
    list_display = ("user", "is_enabled", "daily_tokens", "daily_cost", "turns_at_once", "updated_at")
    list_select_related = ("user",)
    search_fields = ("user__email",)
    ordering = ("user__email", "pk")

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path("", wrap(self.settings_view), name="agent_agentsetting_changelist"),
            path("people/", wrap(self.changelist_view), name="agent_agentsetting_people"),
        ]
        # Django's own list of rows has the address of the page.
        return own + [pattern for pattern in super().get_urls() if pattern.name != "agent_agentsetting_changelist"]

    # Rights: one permission for all of it.

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: AgentSetting | None = None) -> bool:
        return self.has_change_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: AgentSetting | None = None) -> bool:
        return self.has_change_permission(request)

    def shown(self, request: HttpRequest, form: Any, rows: Any) -> dict[str, Any]:
        now = options.parse(json.dumps(rows, sort_keys=True))
        return {
            "title": gettext("Settings → Agent"),
            "sections": [
                {"key": key, "title": title, "lines": form.group(names)} for key, title, names in words.SECTIONS
            ],
            "is_off": not now.agent_enabled,
            "endpoint": ModelEndpoint.objects.filter(is_default=True, is_enabled=True).first(),
            "can_see_endpoints": request.user.has_perm("agent.view_modelendpoint"),
            "people_count": AgentSetting.objects.count(),
        }

    # People

    def get_fields(self, request: HttpRequest, obj: AgentSetting | None = None) -> Any:
        """Whose they are is said once."""
        return ("address", *_FIELDS) if obj is None else ("user", *_FIELDS)

    def get_readonly_fields(self, request: HttpRequest, obj: AgentSetting | None = None) -> Any:
        return () if obj is None else ("user",)

    def save_model(self, request: HttpRequest, obj: AgentSetting, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's
        changed = [name for name in _FIELDS if name in form.changed_data]
        if change and not changed:
            return
        before = AgentSetting.objects.select_for_update().filter(pk=obj.pk).first()
        if change and before is None:
            raise Gone
        if before is None:
            obj.save(force_insert=True)
        else:
            obj.save(update_fields=[*changed, "updated_at"])
        old = before or AgentSetting()
        named = changed if before else _FIELDS
        changes = {name: {"old": _plain(getattr(old, name)), "new": _plain(getattr(obj, name))} for name in named}
        _record(request, obj, {"changes": {name: pair for name, pair in changes.items() if pair["old"] != pair["new"]}})

    def delete_model(self, request: HttpRequest, obj: AgentSetting) -> None:
        _record(request, obj, {"removed": {name: _plain(getattr(obj, name)) for name in _FIELDS}})
        obj.delete()

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[AgentSetting]) -> None:
        for row in queryset:
            self.delete_model(request, row)

    def response_post_save_add(self, request: HttpRequest, obj: Any) -> HttpResponseRedirect:
        return self._people()

    def response_post_save_change(self, request: HttpRequest, obj: Any) -> HttpResponseRedirect:
        return self._people()

    def _people(self) -> HttpResponseRedirect:
        return HttpResponseRedirect(reverse("admin:agent_agentsetting_people"))


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, int) else str(value.normalize())


def _record(request: HttpRequest, row: AgentSetting, metadata: dict[str, Any]) -> None:
    activity.write(
        action=actions.AGENT_PERSON_CHANGED,
        module="agent",
        mode=activity.Mode.MANUAL,
        resource_type="user",
        resource_uuid=str(row.user_id),
        target=str(row.user),
        metadata=metadata,
        **acting.of(request),
    )
