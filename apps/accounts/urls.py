"""The pages of people."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from apps.accounts.views import gates, impersonation, own_sessions, passwords, role, sign_in

urlpatterns = [
    path("sign-in/", sign_in.SignIn.as_view(), name="sign_in"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("account/sessions/", own_sessions.listing, name="own_sessions"),
    path("account/sessions/end-others/", own_sessions.end_others, name="end_other_sessions"),
    path("account/sessions/<str:session>/end/", own_sessions.end, name="end_session"),
    path("impersonate/", impersonation.Start.as_view(), name="start_impersonation"),
    path("impersonate/end/", impersonation.End.as_view(), name="end_impersonation"),
    path("account/role/", role.choose, name="choose_role"),
    path("password/change/", passwords.Change.as_view(), name="password_change"),
    path("password/change/done/", passwords.Changed.as_view(), name="password_change_done"),
    path("password/reset/", passwords.Reset.as_view(), name="password_reset"),
    path("password/reset/done/", passwords.ResetSent.as_view(), name="password_reset_done"),
    path("password/reset/complete/", passwords.ResetComplete.as_view(), name="password_reset_complete"),
    path("password/reset/<str:uidb64>/<str:token>/", passwords.ResetConfirm.as_view(), name="password_reset_confirm"),
    path("account/e-mail/", gates.Email.as_view(), name="email"),
    path("account/e-mail/<str:token>/", gates.EmailLink.as_view(), name="email_link"),
    path("account/referral/", gates.Referral.as_view(), name="referral"),
]
