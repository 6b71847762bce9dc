from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("api", "0006_idempotency")]

    operations = [
        migrations.CreateModel(
            name='Lifesign',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=16)),
                ('uuid', models.UUIDField()),
                ('attempt', models.PositiveIntegerField()),
                ('seen_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['seen_at'], name='api_lifesign_seen')],
                'constraints': [models.UniqueConstraint(fields=('kind', 'uuid'), name='api_lifesign_one_a_work')],
            },
        ),
    ]
