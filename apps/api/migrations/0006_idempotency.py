import uuid

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("api", "0005_confirmations")]

    operations = [
        migrations.CreateModel(
            name='IdempotencyRecord',
            fields=[
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('caller', models.CharField(max_length=80, verbose_name='caller')),
                ('tool', models.CharField(max_length=64, verbose_name='tool')),
                ('key', models.CharField(max_length=255, verbose_name='key')),
                ('input_hash', models.CharField(max_length=64)),
                ('state', models.CharField(choices=[('running', 'running'), ('waiting', 'waiting for a confirmation'), ('done', 'done'), ('unknown', 'outcome unknown')], default='running', max_length=10, verbose_name='state')),
                ('attempt', models.PositiveIntegerField(default=1, verbose_name='attempt')),
                ('external', models.BooleanField(default=False, verbose_name='external')),
                ('status', models.PositiveSmallIntegerField(null=True, verbose_name='status')),
                ('body', models.BinaryField(null=True)),
                ('actor_name', models.CharField(blank=True, max_length=200, verbose_name='called by')),
                ('request_id', models.CharField(blank=True, max_length=64, verbose_name='request id')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('finished_at', models.DateTimeField(null=True, verbose_name='finished at')),
            ],
            options={
                'verbose_name': 'idempotency record',
                'verbose_name_plural': 'idempotency records',
                'ordering': ('-created_at', 'pk'),
                'permissions': [('settle_idempotency', 'Can settle an unknown outcome')],
                'indexes': [models.Index(fields=['-created_at', 'uuid'], name='api_idempotency_newest'), models.Index(fields=['finished_at'], name='api_idempotency_finished'), models.Index(condition=models.Q(('state', 'unknown')), fields=['created_at'], name='api_idempotency_unknown')],
                'constraints': [models.UniqueConstraint(fields=('caller', 'tool', 'key'), name='api_idempotency_once'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'done'), _negated=True), models.Q(('body__isnull', False), ('finished_at__isnull', False), ('status__isnull', False)), _connector='OR'), name='api_idempotency_done_has_an_answer')],
            },
        ),
    ]
