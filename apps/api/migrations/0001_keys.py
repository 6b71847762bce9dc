import uuid

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import apps.api.models.key


class Migration(migrations.Migration):
    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name='KeyFamily',
            fields=[
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'verbose_name': 'key family',
                'verbose_name_plural': 'key families',
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('public_id', models.CharField(editable=False, max_length=12, unique=True, verbose_name='id')),
                ('digest', models.CharField(editable=False, max_length=64)),
                ('pepper_id', models.CharField(editable=False, max_length=32)),
                ('name', models.CharField(max_length=100, verbose_name='name')),
                ('scopes', models.JSONField(blank=True, default=list, validators=[apps.api.models.key.validate_names], verbose_name='scopes')),
                ('requires_approval', models.BooleanField(default=False, verbose_name='requires approval')),
                ('approvers_needed', models.PositiveSmallIntegerField(default=1, validators=[django.core.validators.MinValueValidator(1)], verbose_name='approvers needed')),
                ('networks', models.JSONField(blank=True, default=list, validators=[apps.api.models.key.validate_networks], verbose_name='allowed networks')),
                ('budget', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(20)], verbose_name='units a minute')),
                ('expires_at', models.DateTimeField(blank=True, null=True, verbose_name='expires at')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('last_used_at', models.DateTimeField(editable=False, null=True, verbose_name='last used at')),
                ('revoked_at', models.DateTimeField(editable=False, null=True, verbose_name='revoked at')),
                ('exposed_at', models.DateTimeField(editable=False, null=True, verbose_name='exposed at')),
                ('created_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='api_keys', to=settings.AUTH_USER_MODEL, verbose_name='owner')),
                ('revoked_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='revoked by')),
                ('family', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name='keys', to='api.keyfamily')),
            ],
            options={
                'verbose_name': 'API key',
                'verbose_name_plural': 'API keys',
                'ordering': ('-created_at', 'pk'),
                'constraints': [models.CheckConstraint(condition=models.Q(('budget__isnull', True), ('budget__gte', 20), _connector='OR'), name='api_key_budget_is_20_or_more'), models.CheckConstraint(condition=models.Q(('approvers_needed__gte', 1)), name='api_key_needs_an_approver')],
            },
        ),
    ]
