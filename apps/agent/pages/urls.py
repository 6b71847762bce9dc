"""The chat's pages and their fragments, below `/chat/`."""

from django.urls import path

from apps.agent.pages import views

app_name = "chat"

urlpatterns = [
    path("", views.home, name="home"),
    path("list/", views.listed, name="list"),
    path("tools/", views.tools, name="tools"),
    path("leave/", views.leave, name="leave"),
    path("<str:uuid>/", views.chat, name="chat"),
    path("<str:uuid>/thread/", views.thread, name="thread"),
]
