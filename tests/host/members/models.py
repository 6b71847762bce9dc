"""People of the bare host: an integer key, a log-in by e-mail, nothing that our own people have."""

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models


class Members(BaseUserManager["Member"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "Member":
        member = self.model(email=email, **fields)
        member.set_password(password)
        member.save(using=self._db)
        return member

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "Member":
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


class Member(AbstractBaseUser, PermissionsMixin):
    number = models.AutoField(primary_key=True)
    email = models.EmailField(unique=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)

    objects: ClassVar[Members] = Members()

    USERNAME_FIELD = "email"

    def __str__(self) -> str:
        return self.email
