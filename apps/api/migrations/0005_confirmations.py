import uuid

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("api", "0004_keys_newest_first")]

    operations = [
        migrations.CreateModel(
            name='Confirmation',
            fields=[
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('caller', models.CharField(max_length=80, verbose_name='caller')),
                ('tool', models.CharField(max_length=64, verbose_name='tool')),
                ('input_hash', models.CharField(max_length=64)),
                ('fingerprint', models.CharField(max_length=64)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('used', 'used'), ('rejected', 'rejected'), ('expired', 'expired')], default='waiting', max_length=10, verbose_name='state')),
                ('actor_name', models.CharField(blank=True, max_length=200, verbose_name='called by')),
                ('request_id', models.CharField(blank=True, max_length=64, verbose_name='request id')),
                ('created_at', models.DateTimeField(verbose_name='created at')),
                ('expires_at', models.DateTimeField(verbose_name='expires at')),
                ('decided_at', models.DateTimeField(null=True, verbose_name='decided at')),
            ],
            options={
                'verbose_name': 'confirmation',
                'verbose_name_plural': 'confirmations',
                'ordering': ('-created_at', 'pk'),
                'indexes': [models.Index(fields=['-created_at', 'uuid'], name='api_confirmation_newest'), models.Index(fields=['expires_at'], name='api_confirmation_expires'), models.Index(condition=models.Q(('state', 'waiting')), fields=['caller'], name='api_confirmation_waiting')],
            },
        ),
    ]
