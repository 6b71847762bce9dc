"""The pages of people."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from apps.accounts.views import impersonation, own_sessions, role, sign_in

urlpatterns = [
    path("sign-in/", sign_in.SignIn.as_view(), name="sign_in"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("account/sessions/", own_sessions.listing, name="own_sessions"),
    path("account/sessions/end-others/", own_sessions.end_others, name="end_other_sessions"),
    path("account/sessions/<str:session>/end/", own_sessions.end, name="end_session"),
    path("impersonate/", impersonation.Start.as_view(), name="start_impersonation"),
    path("impersonate/end/", impersonation.End.as_view(), name="end_impersonation"),
    path("account/role/", role.choose, name="choose_role"),
]
