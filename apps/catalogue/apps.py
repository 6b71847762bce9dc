"""The example module: products, categories, prices and stock, as a module author writes one."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CatalogueConfig(AppConfig):
    name = "apps.catalogue"
    label = "catalogue"
    verbose_name = _("Catalogue")
