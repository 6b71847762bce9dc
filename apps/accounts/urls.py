"""The pages of people."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from apps.accounts import views

urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign_in"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
]
