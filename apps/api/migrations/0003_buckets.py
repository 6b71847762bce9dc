from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("api", "0002_settings")]

    operations = [
        migrations.CreateModel(
            name='Bucket',
            fields=[
                ('name', models.CharField(max_length=200, primary_key=True, serialize=False)),
                ('slots', models.JSONField()),
                ('dead_minute', models.BigIntegerField()),
            ],
            options={
                'indexes': [models.Index(fields=['dead_minute'], name='api_bucket_dead_minute')],
            },
        ),
    ]
