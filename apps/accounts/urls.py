"""The pages of people."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from apps.accounts.views import sign_in

urlpatterns = [
    path("sign-in/", sign_in.SignIn.as_view(), name="sign_in"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
]
